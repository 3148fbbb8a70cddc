"""Common parts of both cases in Locust: options, shapes, the two loops, and the verdict."""

import itertools
import random
import ssl
import sys
import time
from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import gevent
from locust import FastHttpUser, LoadTestShape, constant, events, task
from locust.runners import WorkerRunner

from loadtest.locust import arrivals, mix, stages
from loadtest.locust.thresholds import Thresholds, Totals, wrong_answers
from loadtest.locust.tls import client_context

USERS = 8
"""The default of ``--users``."""

PUNCTUALITY = arrivals.Punctuality()
"""Of this process; a master adds up what its workers report."""


@events.init_command_line_parser.add_listener
def add_options(parser: Any) -> None:
    """Each option has an environment variable, which workers need as well."""
    group = parser.add_argument_group("Waddle")

    def option(flag: str, **keywords: Any) -> None:
        name = flag.removeprefix("--").replace("-", "_").upper()
        group.add_argument(flag, env_var=f"WADDLE_LOAD_{name}", **keywords)

    option(
        "--shape",
        default="average",
        choices=list(stages.SHAPES),
        help="users over time; --users, --spawn-rate and --run-time set its size",
    )
    option(
        "--rate",
        type=float,
        default=0,
        help="open loop: requests a second on a fixed schedule, of --users together; "
        "shapes with more users offer more. 0 is the closed loop",
    )
    option(
        "--policies",
        default="p12",
        choices=list(mix.POLICY_SETS),
        help="the set of loadtest/policies that is in force, which says what must be answered",
    )
    option("--namespace", default="payments", help="of the reviewed objects")
    option(
        "--targets",
        default="",
        help="URLs of replicas, separated by commas; users take turns. Without it: --host",
    )
    option("--ca-file", default="", help="verify servers by this bundle; without it not at all")
    option("--failure-ratio-max", type=float, default=0, help="more failed requests: exit code 1")
    option(
        "--p99-ms-max",
        type=float,
        default=1000,
        help="a slower p99: exit code 1; 0 for no limit. Gatekeeper's manifests wait 3 s at most",
    )


@events.init.add_listener
def spawn_at_once(environment: Any, **_: Any) -> None:
    """Without --spawn-rate a stage's users come within a second, not one a second."""
    if environment.parsed_options.spawn_rate is None:
        environment.parsed_options.spawn_rate = 0


class Shape(LoadTestShape):  # type: ignore[misc]  # Locust is not there where types are checked
    """The shape that --shape names; the breakpoint ends with the stage that breaks a threshold."""

    use_common_options = True
    _plan: list[stages.Stage] | None = None
    _stage = 0
    _before = Totals(0, 0, {})
    _began_seconds = 0.0
    stages_held = 0

    def tick(self) -> tuple[int, float] | None:
        """Users and spawn rate now, None at the end."""
        assert self.runner is not None
        options = self.runner.environment.parsed_options
        if self._plan is None:
            self._plan = stages.stages(options.shape, options.num_users or USERS, options.run_time)
        stage = stages.at(self._plan, self.get_run_time())
        if stage != self._stage and options.shape == "breakpoint" and self._broke():
            return None
        if stage is None:
            return None
        self._stage = stage
        users = self._plan[stage].users
        change = abs(users - (self._plan[stage - 1].users if stage else 0))
        return users, options.spawn_rate or max(change, 1)

    def _broke(self) -> bool:
        """Whether the stage that ends now broke a threshold."""
        assert self._plan is not None
        now, seconds = totals(self.runner.environment), self.get_run_time()
        part = now.since(self._before)
        broken = thresholds(self.runner.environment).broken(part)
        rate = part.requests / (seconds - self._began_seconds)
        self._before, self._began_seconds = now, seconds
        say(f"{self._plan[self._stage].users} users, {rate:.0f}/s: {'; '.join(broken) or 'held'}")
        self.stages_held += not broken
        return bool(broken)


class ReviewUser(FastHttpUser):  # type: ignore[misc]  # as above
    """A client that asks for one case after another, by weight."""

    # Tasks are collected from User classes only: in a plain mixin this one would be lost.
    abstract = True
    wait_time = constant(0)
    # An API server waits so long for a webhook at most.
    network_timeout = connection_timeout = 30.0
    _numbers: ClassVar = itertools.count()
    _cases: ClassVar[tuple[list[mix.Case], list[int]] | None] = None

    def __init__(self, environment: Any) -> None:
        """Take the next target, and a place in the schedule."""
        self.options = environment.parsed_options
        self.number = next(self._numbers)
        targets = [one for one in self.options.targets.split(",") if one]
        if targets:
            self.host = targets[self.number % len(targets)].rstrip("/")
        elif environment.host:
            self.host = environment.host.rstrip("/")
        if self.ssl_context_factory is None:  # type: ignore[has-type]  # locust is untyped here
            self.insecure = not self.options.ca_file
            self.ssl_context_factory = self._context
        super().__init__(environment)
        self.schedule: arrivals.Schedule | None = None

    def _context(self) -> ssl.SSLContext:
        bundle = Path(self.options.ca_file).read_text() if self.options.ca_file else ""
        return client_context(bundle, verified=bool(bundle))

    def on_start(self) -> None:
        """Begin the schedule where the loop is open."""
        if ReviewUser._cases is None:
            cases = mix.mix(self.options.policies)
            ReviewUser._cases = (cases, list(itertools.accumulate(case.weight for case in cases)))
        self.unsent = list(ReviewUser._cases[0])
        if self.options.rate:
            users = self.options.num_users or USERS
            # Workers know nothing of each other's users: chance spreads theirs.
            place = random.randrange(users) if is_worker(self.environment) else self.number
            self.schedule = arrivals.schedule(place, users, self.options.rate, time.monotonic())
        self.free = time.monotonic()

    def on_stop(self) -> None:
        """Count what the schedule still wanted."""
        if self.schedule is not None:
            PUNCTUALITY.missed += self.schedule.missed(time.monotonic())

    @task
    def review(self) -> None:
        """Sends a request, and checks its answer."""
        assert ReviewUser._cases is not None
        cases, weights = ReviewUser._cases
        # Each once, so that none is missing from a short run; then by weight.
        case = self.unsent.pop() if self.unsent else random.choices(cases, cum_weights=weights)[0]
        due = None
        if self.schedule is not None:
            due = self.schedule.due
            self.schedule.advance()
            gevent.sleep(max(0.0, due - time.monotonic()))
            PUNCTUALITY.began(due, self.free, time.monotonic())
        began = time.monotonic()
        response, fault = self.ask(case)
        if due is not None:
            response.request_meta["response_time"] += (began - due) * 1000
        with response:
            if fault is None:
                response.success()
            elif response.status_code:
                response.failure(fault)
            # Without a status the connection failed: Locust says how.
        self.free = time.monotonic()

    @abstractmethod
    def ask(self, case: mix.Case) -> tuple[Any, str | None]:
        """Send a case; the response, not yet reported, and what is wrong with it."""


def totals(environment: Any) -> Totals:
    """All requests until now."""
    total = environment.stats.total
    counts = {int(time): count for time, count in total.response_times.items()}
    return Totals(total.num_requests, total.num_failures, counts)


def thresholds(environment: Any) -> Thresholds:
    """The thresholds of the command line."""
    options = environment.parsed_options
    return Thresholds(options.failure_ratio_max, options.p99_ms_max)


def is_worker(environment: Any) -> bool:
    """Whether a master gives the verdict."""
    return isinstance(environment.runner, WorkerRunner)


def say(text: str) -> None:
    """A line for whoever runs it."""
    print(f"waddle: {text}", file=sys.stderr, flush=True)


@events.quitting.add_listener
def judge(environment: Any, **_: Any) -> None:
    """Set the exit code: 1 for wrong answers, or thresholds that do not hold."""
    if environment.runner is None or is_worker(environment):
        return
    errors = environment.stats.errors.values()
    wrong = wrong_answers((str(one.error), one.occurrences) for one in errors)
    broken = thresholds(environment).broken(totals(environment))
    if environment.parsed_options.shape == "breakpoint" and environment.shape_class.stages_held:
        broken = []  # the run searches for the breaking point; a wrong answer is none
    for text in [*wrong, *broken]:
        say(text)
    for text in PUNCTUALITY.complaints():
        say(text)
    environment.process_exit_code = 1 if wrong or broken else 0
    say("thresholds broken" if environment.process_exit_code else "thresholds held")


@events.report_to_master.add_listener
def report_punctuality(data: dict[str, Any], **_: Any) -> None:
    """A worker's counts since its last report."""
    data["waddle_punctuality"] = PUNCTUALITY.take()


@events.worker_report.add_listener
def add_punctuality(data: dict[str, Any], **_: Any) -> None:
    """The master's sum."""
    PUNCTUALITY.add(*data.get("waddle_punctuality", (0, 0, 0)))
