"""Items and records that the store rejected, as readable files, and their requeueing."""
