"""The vocabulary: frozen types, ids, transition tables and errors. Imports nothing of Interlock."""
