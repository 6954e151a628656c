"""Where lock and status of a project are: beside its `storage`, as those of other pipelines beside their checkpoints.

They are beside the project instead where nothing on this machine reaches the storage, as it may be over Connect. So
whoever looks for a run looks at both places. Runs of versions that had both beside the project are found there, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from moldau.spark.pipelines.declarative.project import Project
from moldau.spark.pipelines.declarative.server import CONNECT
from moldau.spark.pipelines.plan import Plan
from moldau.spark.pipelines.running.sessions.opening import reach_without_session
from moldau.spark.pipelines.running.state.folders import STATE, PipelineFolder, only_here
from moldau.spark.pipelines.running.state.locks import AlreadyRunning
from moldau.spark.storage import Folder, LocalFolder, OutOfReach, StorageFailed, is_url

LOOPBACK = ("localhost", "127.0.0.1", "::1")

Reach = Callable[[str], Folder]


def beside_storage(project: Project, reach: Reach = only_here) -> PipelineFolder:
    """Spark lets projects share a storage, so each has a folder of its own there."""
    if project.storage is None:
        return beside_project(project)
    storage = project.storage.rstrip("/")
    settings = {"checkpoint": storage, "state": f"{storage}/{STATE}/{project.name}"}
    return PipelineFolder(Plan(project.name, settings), project.folder, reach)


def beside_project(project: Project) -> PipelineFolder:
    return PipelineFolder(Plan(project.name), project.folder)


def find_folder(project: Project, *, say: Callable[[str], None], reach: Reach | None = None) -> PipelineFolder:
    """To look at a project where it does not run: the place of whoever runs it, or of the newest run.

    Raises StorageFailed where that is unknown.
    """
    here = beside_project(project)
    if project.storage is None or here.holder() is not None:
        return here
    there = beside_storage(project, reach or _by_a_jvm(project))
    noted = here.read_status()
    try:
        if there.holder() is not None or noted is None:
            return there
        newest = there.read_status()
    except StorageFailed as wrong:
        if noted is None:
            raise
        say(f"{wrong}; shown is what the newest run from here noted beside the project")
        return here
    return there if _updated_ms(newest) >= _updated_ms(noted) else here


@contextmanager
def hold_folder(
    project: Project, master: str | None, *, reach: Reach, say: Callable[[str], None]
) -> Iterator[PipelineFolder]:
    """To run a project: its lock is taken until the end. Raises AlreadyRunning, or StorageFailed.

    `reach` is by the Spark that runs it, unless that is a Connect server, which opens no files for others.
    """
    here = beside_project(project)
    with ExitStack() as stack:
        if master is None or not master.startswith(CONNECT):
            yield _taken(beside_storage(project, reach), here, stack)
            return
        try:
            folder = _taken(beside_storage(project, _over_connect(project, master)), here, stack)
        except OSError as wrong:
            say(
                f"pipeline {project.name}: {wrong}; its lock and status are beside the project instead, and runs "
                "from other folders or machines are not refused"
            )
            folder = here
            stack.enter_context(here.locked())
        yield folder


def _taken(folder: PipelineFolder, here: PipelineFolder, stack: ExitStack) -> PipelineFolder:
    """Beside the project may be a run that could not reach the storage, or one of a version that had its lock there."""
    holder = here.holder()
    if holder is not None:
        raise AlreadyRunning(f"{holder} runs this pipeline already")
    stack.enter_context(folder.locked())
    return folder


def _by_a_jvm(project: Project) -> Reach:
    return lambda url: reach_without_session(url, project.configuration, log=lambda: beside_project(project).log)


def _over_connect(project: Project, master: str) -> Reach:
    """A path is one of the server's machine, a URL may be one that both reach."""
    by_a_jvm, host = _by_a_jvm(project), urlsplit(master).hostname

    def reach(url: str) -> Folder:
        if is_url(url):
            return by_a_jvm(url)
        if host not in LOOPBACK:
            raise OutOfReach(f"{url} is a path of {host}, where the Connect server runs")
        return LocalFolder(Path(url))

    return reach


def _updated_ms(status: dict[str, Any] | None) -> int:
    return int(status.get("updated_ms", 0)) if status else -1
