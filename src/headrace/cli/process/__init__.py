"""The processes of `headrace serve`: the supervisor and what its children need."""
