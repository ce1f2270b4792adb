"""The files of the embedded store as they are on the disk, without chDB."""
