"""Tasks belong to whom they were made for: nobody else can ask for them (D6, BUGS C9)."""

from typing import Any

from autobot_mcp_bridge.channels import jsonrpc
from autobot_mcp_bridge.channels.jsonrpc import Answer
from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.policy.principals import Principal
from autobot_mcp_bridge.supervision.journal import Memory

# Tasks that are remembered for one server; the oldest is forgotten first, and then unknown.
MAX_TASKS = 4096
_TASK = "task"


class TaskOwners:
    """Which caller made which task of one server; the next proxy finds it in the memory."""

    def __init__(self, memory: Memory, instance: str) -> None:
        self._memory = memory
        self._instance = instance
        self._owner: dict[str, str] = memory.items(_TASK, instance)

    def learn(self, principal: Principal, answer: Answer) -> Answer:
        """Note the task that a call has made, if it has made one."""
        task = (answer.parsed().get("result") or {}).get("task")
        task_id = task.get("taskId") if isinstance(task, dict) else None
        if isinstance(task_id, str):
            self._owner[task_id] = principal.digest
            self._memory.put(_TASK, self._instance, task_id, principal.digest)
            while len(self._owner) > MAX_TASKS:
                oldest = next(iter(self._owner))
                del self._owner[oldest]
                self._memory.drop(_TASK, self._instance, oldest)
        return answer

    def check(self, principal: Principal, params: dict[str, Any]) -> None:
        """Raise CallError unless the task is the caller's own; unknown and foreign look alike."""
        task_id = params.get("taskId")
        if not isinstance(task_id, str) or self._owner.get(task_id) != principal.digest:
            raise CallError(Cause.TASK_UNKNOWN, "task not found")

    def owner(self, task_id: object) -> str | None:
        """The digest of whose task it is."""
        return self._owner.get(task_id) if isinstance(task_id, str) else None

    def own(self, principal: Principal, answer: Answer) -> Answer:
        """A tasks/list answer without the tasks of others."""
        if answer.is_error:
            return answer
        message = answer.parsed()
        tasks = message["result"].get("tasks")
        if not isinstance(tasks, list):
            return answer
        kept = [
            task
            for task in tasks
            if isinstance(task, dict)
            and self._owner.get(str(task.get("taskId"))) == principal.digest
        ]
        return jsonrpc.rebuilt({**message, "result": {**message["result"], "tasks": kept}})
