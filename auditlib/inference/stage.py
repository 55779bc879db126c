"""The blind run of a pool by its params: what to ask, a first look at the endpoints, the run, the files it leaves."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from auditlib import frames
from auditlib.align import item_order
from auditlib.calls import Generation, Reply, Request
from auditlib.errors import AuditError
from auditlib.frames import coverage_row
from auditlib.inference.canary import Canary, canary_blocking, unanswered
from auditlib.inference.export import Collected, collect, write_runs
from auditlib.inference.items import QuestionItem, items_table, read_question_items
from auditlib.inference.noop import noop_checks
from auditlib.inference.offline import clients_of, run_offline
from auditlib.inference.plan import Forecast, RunSettings, forecast, pilot, plan_coverage, requests_of
from auditlib.inference.runner import Client, Summary, run_blocking
from auditlib.inference.shared import check_each, client_at
from auditlib.inference.store import Store
from auditlib.inference.telling import line_of, teller
from auditlib.params import InferenceParams, Params, ServedModel
from auditlib.paths import RunPaths

#: seconds between lines of progress
_EVERY = 5.0


@dataclass(frozen=True)
class BlindPlan:
    """What is asked of whom.

    Attributes
    ----------
    items : the questions to ask, in the audit's order.
    settings : per model, by its name in the pool; ``RunSettings.model`` is what its answers are stored under.
    others : responses of the pool's other runs, for comparison; None where it has none.
    coverage : what is not asked, and why.
    """

    params: Params
    paths: RunPaths
    items: list[QuestionItem]
    settings: dict[str, RunSettings]
    others: pd.DataFrame | None = None
    coverage: list[dict[str, Any]] = field(default_factory=list)

    @property
    def inference(self) -> InferenceParams:
        return _inference(self.params)

    def forecast(self, model: str, **known: Any) -> Forecast:
        """What a model's part will take; ``sample`` makes it measured instead of guessed."""
        i = self.inference
        # the latency of a vLLM reply is its share of a call already
        concurrency = 1 if i.client == "vllm" else i.concurrency
        prices = {"price_in": i.price_in, "price_out": i.price_out, "concurrency": concurrency}
        return forecast(self.items, self.settings[model], **prices, **known)


@dataclass(frozen=True)
class BlindRun:
    """What the run left: ``responses`` of the responses contract, ``checks`` of the no-op checks, ``coverage``,
    ``summaries`` of the calls made this time by model, and ``agreement`` of the extraction judge with itself."""

    plan: BlindPlan
    responses: pd.DataFrame
    checks: pd.DataFrame
    coverage: pd.DataFrame
    summaries: dict[str, Summary]
    files: tuple[Path, ...]
    judgements: pd.DataFrame | None = None
    agreement: float | None = None

    @property
    def items(self) -> pd.DataFrame:
        return items_table(self.plan.items)


def blind_run(
    params: Params, paths: RunPaths, *, say: Callable[[str], None] = print, limit: int | None = None
) -> BlindRun:
    """Plan, try the endpoints, ask what is not stored yet, write the runs.

    Parameters
    ----------
    params : with an ``inference`` block.
    paths : of the pool; answers are kept in ``answers.sqlite``, the runs go to ``runs/``.
    say : told the progress, a line at a time.
    limit : the first items only.

    Raises
    ------
    AuditError
        A mistake in the params, an endpoint that is not there or loses pictures, no quota. Answers stay stored.
    """
    plan = plan_run(params, paths, limit=limit)
    if plan.inference.client != "vllm":  # those are tried when their weights are loaded for the run
        for result in try_endpoints(plan).values():
            say(str(result))
    return ask(plan, say=say)


def plan_run(params: Params, paths: RunPaths, *, limit: int | None = None) -> BlindPlan:
    """Read the questions and settle what each model is asked; nothing is sent.

    Questions that none of the pool's other runs answered are left out, where there are other runs.
    """
    inference = _inference(params)
    items = read_question_items(questions_file(params))
    others = _other_responses(params, paths)
    coverage = []
    if others is not None:
        known = set(others["item"])
        kept = [i for i in items if i.item in known]
        if not kept:
            raise AuditError(
                "none of these questions was answered by the pool's other runs",
                file=questions_file(params),
                mend="give the file of the same benchmark as inference.items; ids must agree",
            )
        if len(kept) < len(items):
            reason = "questions that no other run of the pool answered are not asked"
            coverage.append(coverage_row("excluded", n=len(items) - len(kept), reason=reason))
        items = kept
    by_id = {i.item: i for i in items}
    items = [by_id[i] for i in item_order(list(by_id))][:limit]
    settings = {m.name: _settings(m, inference, params.seed) for m in inference.models}
    coverage += [row | {"model": name} for name, s in settings.items() for row in plan_coverage(items, s)]
    return BlindPlan(params, paths, items, settings, others, coverage)


def try_endpoints(plan: BlindPlan) -> dict[str, Canary]:
    """A few small questions to each model, before anything is paid for; by name in the pool.

    Notes
    -----
    vLLM loads a model's weights for it, so that only models with questions left are tried, and while they are loaded
    they answer what :func:`measure` will look at.
    """
    tried = {}
    with endpoints(plan.inference, keep=True) as clients:
        for name in _left(plan) if plan.inference.client == "vllm" else plan.settings:
            found = check_each(clients[name], lambda member, name=name: _canary(plan, name, member))
            for number, result in found:
                label = f"{name}, endpoint {number}" if len(found) > 1 else name
                tried[label] = unanswered(label, result) if isinstance(result, AuditError) else result
            if plan.inference.client == "vllm":
                _pilot(plan, name, clients)
    return tried


def measure(plan: BlindPlan, n: int = 20) -> dict[str, Forecast]:
    """Forecasts from about ``n`` questions to each model; their answers are part of the run."""
    with endpoints(plan.inference, keep=True) as clients:
        return {name: plan.forecast(name, sample=_pilot(plan, name, clients, n)) for name in plan.settings}


def ask(plan: BlindPlan, *, say: Callable[[str], None] = print) -> BlindRun:
    """Ask what is not stored yet, one model after the other, and write ``runs/``.

    A model that vLLM loads gets the questions of :func:`try_endpoints` first.
    """
    inference, summaries = plan.inference, {}
    tell = teller(plan.paths, say)
    with endpoints(inference, say=tell) as clients, Store(plan.paths.answers) as store:
        for name, settings in plan.settings.items():
            requests, total = requests_of(plan.items, settings), plan.forecast(name).calls
            if inference.client == "vllm":
                load = _tried(plan, name, clients, tell)
                summaries[name] = run_offline(requests, load, store, say=line_of(name, tell), every=_EVERY, total=total)
                continue
            summaries[name] = run_blocking(
                requests, clients[name], store, say=line_of(name, tell), every=_EVERY, total=total, **_pace(inference)
            )
        parts = [
            _named(collect(store, plan.items, requests_of(plan.items, s)), s.model, name)
            for name, s in plan.settings.items()
        ]
        answers = _together(parts)
        judgements, agreement, unjudged = _judged(plan, answers.responses, store, tell)
    coverage = [*plan.coverage, *unjudged]
    files = write_runs(
        answers, plan.items, plan.paths.runs, plan.params.benchmark, judgements=judgements, coverage=coverage
    )
    checks = _checks(plan, answers.responses)
    table = frames.frame("coverage", [*answers.coverage, *coverage])
    return BlindRun(plan, answers.responses, checks, table, summaries, tuple(files), judgements, agreement)


def questions_file(params: Params) -> Path:
    """The table of questions with pictures that the params name.

    Raises
    ------
    AuditError
        They name none, or one that is not there.
    """
    from auditlib.synth.embedded import items_file

    inference = _inference(params)
    file = inference.items or params.data.dataset
    if file is None and params.data.embedded:
        file = items_file(params.data.embedded)
    if file is None:
        mend = "write items: PATH in the inference block: the benchmark's own table with pictures"
        raise AuditError("the params name no file of questions to ask", file=params.source, mend=mend)
    if not file.exists():
        mend = "correct inference.items; paths in a params file are relative to that file"
        raise AuditError("the file of questions does not exist", file=file, mend=mend)
    return file


@contextlib.contextmanager
def endpoints(
    inference: InferenceParams, *, keep: bool = False, say: Callable[[str], None] | None = None
) -> Iterator[Mapping[str, Client]]:
    """A client for each model, by its name in the pool; the replay server runs as long as the block.

    Several endpoints of a model are one client; ``say`` is told which of them do not answer. vLLM has one model loaded
    at a time, which ``keep`` leaves loaded after the block.
    """
    if inference.client == "vllm":
        with clients_of(inference, keep=keep) as offline:
            yield offline
        return
    with contextlib.ExitStack() as stack:
        played = None
        if inference.replay is not None:
            from auditlib.synth.server import replay

            played = stack.enter_context(replay(inference.replay))

        yield {
            m.name: client_at(
                [played if url is None else url for url in inference.addresses(m)],
                say=say,
                api_key_env=inference.api_key_env,
                timeout=inference.timeout,
                served_name=m.served_as or m.name,
            )
            for m in inference.models
        }


def _left(plan: BlindPlan) -> list[str]:
    """Models with a question whose answer is not stored."""
    with Store(plan.paths.answers) as store:
        return [n for n, s in plan.settings.items() if any(q.key not in store for q in requests_of(plan.items, s))]


def _pilot(plan: BlindPlan, name: str, clients: Mapping[str, Client], n: int = 20) -> list[tuple[Request, Reply]]:
    """About ``n`` of a model's questions with their answers."""
    first = pilot(plan.items, plan.settings[name], n)
    with Store(plan.paths.answers) as store:
        if plan.inference.client == "vllm":
            run_offline(first, lambda: clients[name], store)
        else:
            run_blocking(first, clients[name], store, **_pace(plan.inference))
        return [(q, a) for q in first if (a := store.get(q.key)) is not None]


def _canary(plan: BlindPlan, name: str, client: Client) -> Canary:
    generation, conditions = _generation(plan.inference), plan.inference.conditions
    return canary_blocking(client, plan.settings[name].model, conditions=conditions, generation=generation)


def _tried(plan: BlindPlan, name: str, clients: Mapping[str, Client], tell: Callable[[str], None]) -> Callable[[], Any]:
    """Loads a model's weights, and says what it makes of the small questions."""

    def load() -> Client:
        client = clients[name]
        tell(str(_canary(plan, name, client)))
        return client

    return load


def _inference(params: Params) -> InferenceParams:
    if params.inference is None:
        raise AuditError(
            "the params have no inference block, so there is nothing to ask",
            file=params.source,
            mend="add one as in params/tinysee_rerun.yaml, or set params to that file",
        )
    return params.inference


def _generation(i: InferenceParams) -> Generation:
    return Generation(
        temperature=i.temperature, max_tokens=i.max_tokens, top_p=i.top_p, seed=i.generation_seed,
        reasoning_effort=i.reasoning_effort, logprobs=i.logprobs,
    )  # fmt: skip


def _settings(model: ServedModel, i: InferenceParams, seed: int) -> RunSettings:
    # answers are stored under what was really asked: another served_as is another model
    known_as = model.name if model.served_as in (None, model.name) else f"{model.name} ({model.served_as})"
    return RunSettings(
        model=known_as, conditions=tuple(dict.fromkeys(i.conditions)), prompt_mode=i.prompt_mode, layout=i.layout,
        placeholder=i.placeholder, samples=i.samples, generation=_generation(i), wrong_image=i.wrong_image, seed=seed,
    )  # fmt: skip


def _pace(i: InferenceParams) -> dict[str, Any]:
    return {"concurrency": i.concurrency, "max_attempts": i.max_attempts, "rpm": i.rpm, "tpm": i.tpm}


def _other_responses(params: Params, paths: RunPaths) -> pd.DataFrame | None:
    """Responses of the runs that the params' data hold; None for bare results."""
    from auditlib.readers import read_runs

    if not params.data.has_runs:
        return None
    runs = read_runs(
        params.data, benchmark=params.benchmark, judge=params.judge, exclude_models=params.audit.exclude_models,
        outputs=paths.outputs,
    )  # fmt: skip
    return runs.responses if isinstance(runs, frames.Runs) else None


def _named(answers: Collected, asked: str, name: str) -> Collected:
    """Answers under the model's name in the pool, where they are stored under another."""
    if asked == name:
        return answers

    def label(run: Any) -> Any:
        return name + run[len(asked) :] if isinstance(run, str) and run.startswith(f"{asked}/") else run

    responses = answers.responses
    if len(responses):
        responses = responses.assign(model=name, run=responses["run"].map(label))
    coverage = [row | {"model": name, "run": label(row["run"])} for row in answers.coverage]
    facts = {label(run): fact | {"model": name} for run, fact in answers.provenance.items()}
    return Collected(responses, coverage, facts)


def _together(parts: list[Collected]) -> Collected:
    told = [p.responses for p in parts if len(p.responses)]
    if not told:
        raise AuditError("no question was answered", mend="see the lines above, mend the endpoint, run again")
    responses = pd.concat(told, ignore_index=True)
    coverage = [row for p in parts for row in p.coverage]
    return Collected(responses, coverage, {run: fact for p in parts for run, fact in p.provenance.items()})


def _judged(
    plan: BlindPlan, responses: pd.DataFrame, store: Store, tell: Callable[[str], None]
) -> tuple[pd.DataFrame | None, float | None, list[dict[str, Any]]]:
    """Verdicts of the extraction judge that the params name, if they do."""
    from auditlib.inference.judge import JudgeSettings, judge_requests, judgements_of

    wanted = plan.inference.judge
    if wanted is None:
        return None, None, []
    shared = [*plan.inference.base_urls] or [plan.inference.base_url]
    client = client_at(
        [wanted.base_url] if wanted.base_url else shared,
        say=tell,
        api_key_env=wanted.api_key_env,
        timeout=plan.inference.timeout,
    )
    settings = JudgeSettings(wanted.model, repeats=wanted.repeats)
    requests = judge_requests(plan.items, responses, settings)
    run_blocking(requests, client, store, say=line_of(f"judge {wanted.model}", tell), every=_EVERY,
                 **_pace(plan.inference))  # fmt: skip
    judged = judgements_of(plan.items, responses, settings, store.get)
    return judged.judgements, judged.agreement, judged.coverage


def _checks(plan: BlindPlan, responses: pd.DataFrame) -> pd.DataFrame:
    """No-op checks, against full runs of other toolkits too; prompt tokens are compared within own runs only."""
    asked = {i.item for i in plan.items}
    full = responses["condition"].eq("full")
    own = set(responses.loc[full, "model"])
    told, foreign = responses, plan.others
    if foreign is not None:
        foreign = foreign[foreign["condition"].eq("full") & foreign["item"].isin(asked) & ~foreign["model"].isin(own)]
        told = pd.concat([responses, foreign], ignore_index=True) if len(foreign) else responses
    checks = noop_checks(told, items_table(plan.items), tuple(plan.params.audit.exact))
    checks = checks[checks["model"].isin(set(responses["model"]))]
    tokens = checks["name"].str.startswith("prompt_tokens") & ~checks["model"].isin(own)
    return checks[~tokens].reset_index(drop=True)
