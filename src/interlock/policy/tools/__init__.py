"""Tools: what their arguments and answers mean to a run, and which of their effects something vouches for. Pure."""
