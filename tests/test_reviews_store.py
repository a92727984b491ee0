"""The store: confirmed once, never overwritten, taken back and put back; on both databases."""

import unicodedata
from collections.abc import Iterator

import pytest

from refinerank_core.errors import StoreError
from refinerank_core.reviews.conflicts import ConflictError
from refinerank_core.reviews.records import Action, Assignment, Comment, Conflicted, Step, Truth
from refinerank_core.reviews.store import Store
from refinerank_core.reviews.worklist import Wanted
from tests.stores import REJECT, Ticking, act, case, fix, new_database

__all__ = ["new_database"]  # a fixture

HOSTILE = [
    "<img src=x onerror=\"document.title='owned'\">",
    "[click](javascript:document.title='owned')",
    "{{7*7}} ${7*7}",
    "line1\nline2",
    "\u202egrepsar",
    "a" * 5000,
    "'; DROP TABLE events; --",
    "100% \\frac{a}{b} $x$",
    "Ärzte 手术 🩺 عربى",
]


@pytest.fixture(params=["sqlite", "postgresql"])
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Store]:
    place = str(tmp_path_factory.mktemp("store") / "reviews.db")
    if request.param == "postgresql":
        place = request.getfixturevalue("new_database")()
    with Store(place, clock=Ticking()) as opened:
        yield opened
        assert opened.verify().problems == ()


def test_a_decision_is_confirmed_with_its_number_and_state(store: Store) -> None:
    one = case()
    store.add([one], by="import")

    receipt = store.record(act(one, "decided", fix(tags=("small target",), seconds=4.5)))

    assert (receipt.event.seq, receipt.event.version, receipt.replayed) == (2, 1, False)
    assert receipt.event.at == "2026-11-30T09:00:20.000000Z"
    assert receipt.state.status == "fixed"
    assert receipt.state.reviewed_box == (12.0, 11.0, 52.5, 49.25)
    assert store.case(one.case_id).state == receipt.state


def test_importing_the_same_case_twice_changes_nothing(store: Store) -> None:
    cases = [case(1.0), case(2.0)]
    first = store.add(cases, by="import", truths=[Truth(box=(1, 1, 9, 9)), None])

    second = store.add(cases, by="another", truths=[Truth(box=(1, 1, 9, 9)), None])

    assert (first.new, first.known, first.truths) == (2, 0, 1)
    assert (second.new, second.known, second.truths) == (0, 2, 0)
    assert len(store.events()) == 3


def test_an_action_sent_again_is_written_once(store: Store) -> None:
    one = case()
    store.add([one], by="import")
    action = act(one, "decided", fix())
    first = store.record(action)
    store.record(act(one, "decided", REJECT, based_on=1, by="Dr B"))

    again = store.record(Action.from_json(action.model_dump_json()))

    assert again.replayed
    assert again.event == first.event
    assert store.counts()["decided"] == 2


def test_an_id_of_another_action_is_refused(store: Store) -> None:
    cases = [case(1.0), case(2.0)]
    store.add(cases, by="import")
    store.record(act(cases[0], "decided", REJECT, client_id="same-id-1"))

    with pytest.raises(StoreError, match="belongs to another"):
        store.record(act(cases[1], "decided", REJECT, client_id="same-id-1"))


def test_a_late_edit_is_told_of_the_other_one_and_kept(store: Store) -> None:
    one = case()
    store.add([one], by="import")
    theirs = store.record(act(one, "decided", fix(), by="Dr B"))
    late = act(one, "decided", REJECT, by="Dr A")

    with pytest.raises(ConflictError, match="Dr B at 09:00 UTC corrected the box") as caught:
        store.record(late)

    conflict = caught.value
    assert conflict.yours == late
    assert conflict.theirs == (theirs.event,)
    assert conflict.state.version == 1
    assert store.case(one.case_id).state.status == "fixed"
    kept = store.history(one.case_id)[-1]
    assert isinstance(kept.body, Conflicted)
    assert (kept.reviewer, kept.body.attempt["decision"]) == ("Dr A", "reject")
    assert store.case(one.case_id).state.open_conflicts == (kept.seq,)


def test_a_conflict_ends_as_its_person_chooses(store: Store) -> None:
    cases = [case(1.0), case(2.0)]
    store.add(cases, by="import")
    numbers = []
    for one in cases:
        store.record(act(one, "decided", fix(), by="Dr B"))
        with pytest.raises(ConflictError) as caught:
            store.record(act(one, "decided", REJECT, by="Dr A"))
        numbers.append(caught.value.kept_as)

    mine = REJECT.model_copy(update={"resolves": numbers[0]})
    store.record(act(cases[0], "decided", mine, based_on=1))
    store.record(act(cases[1], "settled", Step(target=numbers[1])))

    states = [store.case(one.case_id).state for one in cases]
    assert [state.status for state in states] == ["rejected", "fixed"]
    assert [state.open_conflicts for state in states] == [(), ()]


def test_a_conflicting_action_sent_again_is_the_same_conflict(store: Store) -> None:
    one = case()
    store.add([one], by="import")
    store.record(act(one, "decided", fix(), by="Dr B"))
    late = act(one, "decided", REJECT, by="Dr A")
    outcomes = store.record_all([late, late])

    numbers = [one.kept_as for one in outcomes if isinstance(one, ConflictError)]

    assert len(numbers) == 2
    assert len(set(numbers)) == 1
    assert store.counts()["conflicted"] == 1


def test_undo_and_redo_walk_back_and_forth(store: Store) -> None:
    one = case()
    store.add([one], by="import")
    store.record(act(one, "decided", REJECT))
    store.record(act(one, "decided", fix(), based_on=1))

    seen = []
    for version, kind in enumerate(("undone", "undone", "redone", "redone"), start=2):
        assert kind in ("undone", "redone")
        step = act(one, "undone" if kind == "undone" else "redone", Step(), based_on=version)
        seen.append(store.record(step).state.status)

    assert seen == ["rejected", "new", "rejected", "fixed"]


def test_nobody_undoes_the_decision_of_another(store: Store) -> None:
    one = case()
    store.add([one], by="import")
    store.record(act(one, "decided", REJECT, by="Dr B"))

    with pytest.raises(StoreError, match="no decision of yours to undo"):
        store.record(act(one, "undone", Step(), based_on=1, by="Dr A"))


def test_a_new_decision_ends_what_could_be_redone(store: Store) -> None:
    one = case()
    store.add([one], by="import")
    store.record(act(one, "decided", REJECT))
    store.record(act(one, "undone", Step(), based_on=1))
    store.record(act(one, "decided", fix(), based_on=2))

    with pytest.raises(StoreError, match="to redo"):
        store.record(act(one, "redone", Step(), based_on=3))


def test_remarks_and_assignments_never_conflict(store: Store) -> None:
    one = case()
    store.add([one], by="import")
    store.record(act(one, "decided", REJECT, by="Dr B"))

    store.record(act(one, "commented", Comment(text="blood", frame_index=25, point=(3.5, 4.5))))
    state = store.record(act(one, "assigned", Assignment(to="Dr C"))).state

    assert state.version == 1
    assert state.assigned_to == "Dr C"
    assert [(r.reviewer, r.comment.text, r.comment.point) for r in state.remarks] == [
        ("Dr A", "blood", (3.5, 4.5))
    ]


def test_each_reviewer_keeps_an_opinion(store: Store) -> None:
    one = case()
    store.add([one], by="import")
    store.record(act(one, "decided", fix(), by="Dr A"))
    store.record(act(one, "decided", REJECT, based_on=1, by="Dr B"))
    state = store.record(act(one, "decided", fix((1, 1, 5, 5)), based_on=2, by="Dr A")).state

    assert [(o.reviewer, o.judgement.decision) for o in state.opinions] == [
        ("Dr B", "reject"),
        ("Dr A", "fix"),
    ]
    assert state.reviewed_box == (1.0, 1.0, 5.0, 5.0)


def test_text_comes_back_as_it_was_typed(store: Store) -> None:
    cases = [case(float(k), question=text) for k, text in enumerate(HOSTILE)]
    store.add(cases, by="import")
    pairs = list(zip(cases, HOSTILE, strict=True))
    store.record_all([act(one, "decided", fix(comment=text)) for one, text in pairs])

    for one, text in pairs:
        current = store.case(one.case_id).state.current
        assert current is not None
        assert current.judgement.comment == text
        assert store.case(one.case_id).case.question == text
        assert store.queue(Wanted(text=text[:40])).total == 1


def test_two_spellings_of_a_name_are_one_case(store: Store) -> None:
    name = "Abschätzung é.mp4"
    spellings = [unicodedata.normalize(form, name) for form in ("NFC", "NFD")]
    assert spellings[0] != spellings[1]

    found = [
        store.add([case(video_name=spelling, video_sha256="")], by="i") for spelling in spellings
    ]

    assert [one.new for one in found] == [1, 0]
    assert store.queue(Wanted()).total == 1


def test_a_truth_finds_the_cases_it_is_about(store: Store) -> None:
    answered = [case(1.0), case(1.0, grounding_id="other run"), case(2.0)]
    store.add(answered, by="import")
    about = case(1.0, video_name="clip.mkv", video_sha256="", answers=(), question="hook")

    added = store.add_truths([about], [Truth(box=(10, 10, 50, 30))], by="import")

    assert (added.new, added.known, added.truths) == (0, 2, 2)
    items = {item.case_id: item.iou for item in store.queue(Wanted()).items}
    assert items[answered[0].case_id] == pytest.approx(0.5)
    assert items[answered[2].case_id] is None


def test_another_runs_answer_takes_over_the_truth(store: Store) -> None:
    store.add([case()], by="import", truths=[Truth(box=(1, 2, 30, 40))])
    other_run = case(1.0005, grounding_id="another", box=(0.0, 0.0, 9.0, 9.0))

    added = store.add([other_run, case(2.0, grounding_id="another")], by="import")

    assert (added.new, added.truths) == (2, 1)
    assert store.case(other_run.case_id).state.truth == (1.0, 2.0, 30.0, 40.0)
    assert not store.case(case(2.0, grounding_id="another").case_id).state.has_truth
    assert store.add([other_run], by="import").truths == 0


def test_a_truth_of_one_question_is_not_given_to_another_with_its_target(store: Store) -> None:
    left = case(question="Where is the left hook?")
    right = case(question="Where is the right hook?")
    store.add([left, right], by="import")

    store.add_truths([left], [Truth(box=(1, 2, 30, 40))], by="import")

    assert store.case(left.case_id).state.has_truth
    assert not store.case(right.case_id).state.has_truth
    store.add_truths([case(question="hook", answers=())], [Truth(box=(5, 5, 9, 9))], by="import")
    assert store.case(right.case_id).state.truth == (5.0, 5.0, 9.0, 9.0)  # it names the thing alone


def test_a_truth_that_came_first_waits_for_its_case(store: Store) -> None:
    store.add_truths([case(question="hook", answers=())], [Truth(box=(5, 5, 9, 9))], by="import")

    store.add([case(), case(target="grasper", question="Where is it?")], by="import")

    assert store.case(case().case_id).state.truth == (5.0, 5.0, 9.0, 9.0)
    other = case(target="grasper", question="Where is it?")
    assert not store.case(other.case_id).state.has_truth


def test_a_truth_about_nothing_known_makes_a_case_to_draw_in(store: Store) -> None:
    about = case(answers=())

    added = store.add_truths([about], [Truth(box=(10, 10, 50, 30))], by="import")

    assert added.new == 1
    assert store.case(about.case_id).state.truth == (10.0, 10.0, 50.0, 30.0)


def test_a_batch_with_an_unknown_case_writes_nothing(store: Store) -> None:
    known, unknown = case(1.0), case(2.0)
    store.add([known], by="import")

    with pytest.raises(StoreError, match="No case"):
        store.record_all([act(known, "decided", fix()), act(unknown, "decided", fix())])

    assert store.counts() == {"imported": 1}


def test_a_fold_of_the_events_is_the_state_that_is_read(store: Store) -> None:
    one = case()
    store.add([one], by="import", truths=[Truth(box=(1, 1, 9, 9))])
    store.record(act(one, "decided", fix()))
    store.record(act(one, "undone", Step(), based_on=1))

    assert store.folded(one.case_id) == store.case(one.case_id).state


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"client_id": "short"}', "client_id"),
        ("not json", "the action"),
        (
            '{"client_id": "12345678", "case_id": "x", "reviewer": "A", "kind": "decided",'
            ' "body": {"decision": "fix"}}',
            "box_after",
        ),
        (
            '{"client_id": "12345678", "case_id": "x", "reviewer": "A", "kind": "decided",'
            ' "body": {"decision": "fix", "box_after": [5, 5, 1, 9]}}',
            "x0 < x1",
        ),
    ],
)
def test_an_action_that_cannot_be_is_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(StoreError, match=words):
        Action.from_json(text)
