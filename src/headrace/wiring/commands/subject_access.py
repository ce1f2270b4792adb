"""Shows what is stored of a subject to a command, whether the service runs or not."""

import asyncio
import contextlib
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import BinaryIO

from headrace.adapters.engine.ipc.connections import EngineConnections
from headrace.base.errors import HeadraceError, OperatorError
from headrace.base.settings import Settings
from headrace.model.erasure import Selector
from headrace.wiring.commands.engine_access import EngineRuntime, connect_engine, find_engine
from headrace.wiring.commands.erasure import check_website_exists
from headrace.wiring.store import open_export_store
from headrace.wiring.subject_access import subject_access_of


def show_subject(
    settings: Settings,
    website_id: str,
    selectors: Sequence[Selector],
    output: BinaryIO,
    *,
    with_visitors: bool = False,
) -> int:
    """Write a line for each row of a subject; return their number. Raises `OperatorError`."""
    check_website_exists(settings, website_id)
    with find_engine(settings, "headrace subject-access") as runtime:
        try:
            return asyncio.run(
                _show(settings, runtime, website_id, selectors, output, with_visitors=with_visitors)
            )
        except OperatorError:
            raise
        except HeadraceError as error:
            raise OperatorError(f"cannot show what is stored: {error}") from error


async def _show(
    settings: Settings,
    runtime: EngineRuntime,
    website_id: str,
    selectors: Sequence[Selector],
    output: BinaryIO,
    *,
    with_visitors: bool,
) -> int:
    count = 0
    async with AsyncExitStack() as stack:
        engine: EngineConnections = await stack.enter_async_context(
            connect_engine(settings, runtime)
        )
        store = open_export_store(settings, stack, engine=engine)
        service = subject_access_of(settings, store)
        shown = service.lines(website_id, selectors, with_visitors=with_visitors)
        async with contextlib.aclosing(shown) as lines:
            async for line in lines:
                output.write(line)
                count += 1
    output.flush()
    return count
