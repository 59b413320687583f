"""Views of a run: web and terminal. Empty until its issue; the review is in `oracle`."""
