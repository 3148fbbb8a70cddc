"""The queue of keys that become due: each once, one worker for each, bounded."""

import asyncio

import pytest

from tests.patience import PATIENCE_SECONDS
from webhook.backoff import Backoff
from webhook.cluster.work_queue import WorkQueue


class Clock:
    """Seconds that a test moves."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


async def taken(queue):
    """The next key if one is due, else None."""
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(queue.get())
        for _ in range(3):
            await asyncio.sleep(0)
        if not task.done():
            task.cancel()
    return None if task.cancelled() else task.result()


def test_a_key_is_given_out_once_however_often_it_was_added():
    async def run():
        queue = WorkQueue(10)
        for _ in range(5):
            assert queue.add("a")
        assert await taken(queue) == "a"
        queue.done("a")
        assert await taken(queue) is None
        assert queue.is_idle

    asyncio.run(run())


def test_adding_a_key_again_does_not_put_it_off():
    async def run():
        clock = Clock()
        queue = WorkQueue(10, clock)
        queue.add("a", 10)
        clock.now = 6
        queue.add("a", 10)
        assert await taken(queue) is None
        clock.now = 10
        assert await taken(queue) == "a"

    asyncio.run(run())


def test_a_key_may_become_due_sooner():
    async def run():
        clock = Clock()
        queue = WorkQueue(10, clock)
        queue.add("a", 10)
        queue.add("a", 1)
        clock.now = 1
        assert await taken(queue) == "a"
        clock.now = 10
        queue.done("a")
        assert await taken(queue) is None

    asyncio.run(run())


def test_a_key_has_one_worker_at_a_time():
    async def run():
        queue = WorkQueue(10)
        queue.add("a")
        assert not queue.has_worker("a")
        assert await taken(queue) == "a"
        assert queue.has_worker("a")
        queue.add("a")
        assert await taken(queue) is None
        assert len(queue) == 1
        queue.done("a")
        assert not queue.has_worker("a")
        assert await taken(queue) == "a"

    asyncio.run(run())


def test_keys_come_in_the_order_in_which_they_are_due():
    async def run():
        clock = Clock()
        queue = WorkQueue(10, clock)
        for key, delay in (("c", 3), ("a", 1), ("b", 2)):
            queue.add(key, delay)
        clock.now = 5
        assert [await taken(queue) for _ in range(3)] == ["a", "b", "c"]

    asyncio.run(run())


def test_there_is_room_for_so_many_keys_and_a_waiter_learns_of_more():
    async def run():
        queue = WorkQueue(2)
        assert queue.add("a")
        assert queue.add("b")
        assert not queue.add("c")
        assert queue.add("a")
        async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(queue.room())
            await asyncio.sleep(0)
            assert not waiting.done()
            await taken(queue)
        assert queue.add("c")

    asyncio.run(run())


def test_a_worker_that_waits_is_woken_by_a_key():
    async def run():
        queue = WorkQueue(10)
        async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as tasks:
            waiting = [tasks.create_task(queue.get()) for _ in range(2)]
            await asyncio.sleep(0)
            queue.add("a", 0.01)
            queue.add("b")
        assert {task.result() for task in waiting} == {"a", "b"}

    asyncio.run(run())


def test_each_key_is_settled_once_at_a_time_and_again_when_it_was_added_meanwhile():
    async def run():
        queue, under_way, settled = WorkQueue(), set(), []
        finished = asyncio.Event()

        async def settle(key):
            assert key not in under_way, "two workers have one key"
            under_way.add(key)
            if key == "a" and "a" not in settled:
                queue.add("a")
            await asyncio.sleep(0)
            under_way.discard(key)
            settled.append(key)
            if len(settled) == 4:
                finished.set()

        for key in ("a", "b", "c"):
            queue.add(key)
        async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as tasks:
            running = tasks.create_task(queue.run(settle, 2))
            await finished.wait()
            running.cancel()
        assert sorted(settled) == ["a", "a", "b", "c"]

    asyncio.run(run())


def test_a_queue_at_rest_is_one_task_however_many_workers_it_may_have():
    async def run():
        queue, settled = WorkQueue(), asyncio.Event()

        async def settle(key):
            assert len(asyncio.all_tasks()) == 3, "a key wakes one worker"
            settled.set()

        async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as tasks:
            running = tasks.create_task(queue.run(settle, 8))
            for _ in range(3):
                await asyncio.sleep(0)
            assert len(asyncio.all_tasks()) == 2
            queue.add("a")
            await settled.wait()
            running.cancel()

    asyncio.run(run())


def test_no_more_keys_are_settled_at_once_than_there_are_workers():
    async def run():
        queue, under_way, most = WorkQueue(), set(), 0
        finished = asyncio.Event()

        async def settle(key):
            nonlocal most
            under_way.add(key)
            most = max(most, len(under_way))
            await asyncio.sleep(0)
            under_way.discard(key)
            if key == 19:
                finished.set()

        for key in range(20):
            queue.add(key)
        async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as tasks:
            running = tasks.create_task(queue.run(settle, 3))
            await finished.wait()
            running.cancel()
        assert most == 3

    asyncio.run(run())


def test_what_fails_again_and_again_waits_longer_until_it_is_forgotten():
    async def run():
        clock = Clock()
        waits = iter([1.0, 2.0, 1.0])

        class Waits(Backoff):
            def next_seconds(self):
                return next(waits)

        queue = WorkQueue(10, clock, backoff=lambda: Waits(1.0, 1.0))
        queue.retry("a")
        assert await taken(queue) is None
        clock.now = 1
        assert await taken(queue) == "a"
        queue.retry("a")
        queue.done("a")
        clock.now = 2.5
        assert await taken(queue) is None
        clock.now = 3
        assert await taken(queue) == "a"
        queue.forget("a")
        queue.done("a")
        queue.retry("a")
        clock.now = 4
        assert await taken(queue) == "a"

    asyncio.run(run())


class Instantly(Backoff):
    """No delay between tries; how many there were."""

    def next_seconds(self):
        """None at all."""
        self.failures += 1
        return 0.0


def settled_with_faults(*outcomes, fault=None):
    """The keys settled, in turn with what that raised, if anything; and the queue behind it."""
    settled, outcome_of = [], iter(outcomes)

    async def run():
        queue, finished = WorkQueue(backoff=lambda: Instantly(1.0, 1.0)), asyncio.Event()

        async def settle(key):
            outcome = next(outcome_of, None)
            settled.append((key, outcome))
            if len(settled) >= len(outcomes):
                finished.set()
            if outcome is not None:
                raise outcome
            queue.forget(key)

        queue.add("a")
        queue.add("b")
        async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as tasks:
            running = tasks.create_task(queue.run(settle, 1, fault=fault))
            await finished.wait()
            for _ in range(3):
                await asyncio.sleep(0)
            running.cancel()
        return queue

    return asyncio.run(run()), settled


def test_what_nobody_foresaw_costs_its_key_alone_which_is_tried_again():
    logged = []
    bug = ZeroDivisionError("a bug")
    queue, settled = settled_with_faults(
        bug, None, bug, None, fault=lambda key, error: logged.append((key, error))
    )
    assert settled == [("a", bug), ("b", None), ("a", bug), ("a", None)]
    assert logged == [("a", bug)] * 2
    assert queue.is_idle
    assert not queue._failing


@pytest.mark.parametrize("end", [SystemExit(3), KeyboardInterrupt()], ids=type)
def test_what_is_to_end_the_process_is_no_fault_of_a_key(end):
    logged = []
    with pytest.raises(type(end)):
        settled_with_faults(end, fault=lambda key, _: logged.append(key))
    assert logged == []


def test_a_key_that_is_cancelled_has_no_fault():
    logged = []

    async def run():
        queue, begun = WorkQueue(), asyncio.Event()

        async def settle(_):
            begun.set()
            await asyncio.Event().wait()

        queue.add("a")
        async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as tasks:
            running = tasks.create_task(
                queue.run(settle, 1, fault=lambda key, _: logged.append(key))
            )
            await begun.wait()
            running.cancel()
        return queue

    assert asyncio.run(run()).is_idle
    assert logged == []


def test_who_learns_of_no_faults_is_ended_by_one():
    with pytest.raises(ExceptionGroup) as raised:
        settled_with_faults(ZeroDivisionError("a bug"))
    assert raised.group_contains(ZeroDivisionError)
