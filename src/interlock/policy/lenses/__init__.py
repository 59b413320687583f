"""Lenses as data: which requests are which actions of a service, with roles for their values. Pure."""
