"""What Interlock costs, measured against the bare command: `make bench`. Not shipped."""
