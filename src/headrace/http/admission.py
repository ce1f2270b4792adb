"""What decides who may call, and how often."""

from msgspec import Struct

from headrace.administration.authorize import AdministrationAuthorizer
from headrace.administration.sign_in import SignInService
from headrace.base.clock import Clock
from headrace.base.settings import Settings
from headrace.ports.directory import TenancySource
from headrace.ports.rate_limiter import CountedCall, RateLimiters, calls_per_minute
from headrace.ports.sessions import Sessions
from headrace.query.authorize import QueryAuthorizer


class Admission(Struct, frozen=True, kw_only=True):
    """The directory in memory, its sessions, and the rate limits."""

    tenancy: TenancySource
    sessions: Sessions
    limiters: RateLimiters
    clock: Clock

    def query_authorizer(self, settings: Settings, call: CountedCall) -> QueryAuthorizer:
        """Return what authorizes queries that count as `call`."""
        return QueryAuthorizer(
            tenancy=self.tenancy,
            limiter=self.limiters[call],
            write_limiter=self.limiters[CountedCall.WRITE],
            rate_limit=calls_per_minute(settings.query_rate_limit)[call],
            clock=self.clock,
        )

    def administration_authorizer(self) -> AdministrationAuthorizer:
        """Return what authorizes administration."""
        return AdministrationAuthorizer(
            tenancy=self.tenancy, limiter=self.limiters[CountedCall.WRITE], clock=self.clock
        )

    def sign_in_service(self) -> SignInService:
        """Return what signs in to the page."""
        return SignInService(
            self.sessions,
            tenancy=self.tenancy,
            failures=self.limiters[CountedCall.FAILED_SIGN_IN],
            clock=self.clock,
        )
