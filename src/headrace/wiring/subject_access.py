"""What shows everything that is stored of a subject, for workers and commands."""

from headrace.adapters.quarantine.file_quarantine import FileQuarantine
from headrace.base.settings import Settings
from headrace.erasure.subject_access import SubjectAccessService
from headrace.ports.rows.export import ExportStore
from headrace.wiring.data import data_dir_paths
from headrace.wiring.store_address import store_dialect


def subject_access_of(settings: Settings, store: ExportStore) -> SubjectAccessService:
    """Return the use case over a store that is open for exports."""
    return SubjectAccessService(
        store,
        dialect=store_dialect(settings),
        read_entries=FileQuarantine(data_dir_paths(settings).quarantine).readable_contents,
        max_memory_bytes=settings.query_max_memory_bytes,
    )
