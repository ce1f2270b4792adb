"""The endpoints over stored rows as a whole: export, erasure, access, and what they occupy."""
