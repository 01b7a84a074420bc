from __future__ import annotations

from rlnb.view.lab.undo import MAX_STEPS, MERGE_SECONDS, UndoStack


def test_undo_and_redo_walk_over_the_values():
    stack = UndoStack(0)
    assert (stack.undoes, stack.redoes) == ("", "")
    stack.push(1, "one")
    stack.push(2, "two")
    assert (stack.value, stack.undoes) == (2, "two")
    assert stack.undo() == 1
    assert (stack.undoes, stack.redoes) == ("one", "two")
    assert stack.undo() == stack.undo() == 0
    assert stack.redo() == 1
    stack.push(3, "three")  # what was undone is forgotten
    assert (stack.redoes, stack.redo(), stack.undo(), stack.undo()) == ("", 3, 1, 0)


def test_a_drag_is_one_step_and_a_pause_ends_it():
    now = [100.0]
    stack = UndoStack(0.0, clock=lambda: now[0])
    for value in (0.1, 0.2, 0.3):
        now[0] += 0.05
        stack.push(value, "weight", merge="weight env")
    stack.push(9.0, "other", merge="weight other")
    assert stack.undo() == 0.3
    now[0] += MERGE_SECONDS + 0.1
    stack.push(0.4, "weight", merge="weight env")
    assert stack.undo() == 0.3
    assert stack.undo() == 0.0


def test_a_drag_after_an_undo_does_not_swallow_the_step_before():
    stack = UndoStack(0, clock=lambda: 0.0)
    stack.push(1, "a", merge="a")
    stack.undo()
    stack.push(2, "a", merge="a")
    assert (stack.value, stack.undo()) == (2, 0)


def test_the_oldest_steps_are_forgotten():
    stack = UndoStack(0)
    for value in range(1, MAX_STEPS + 50):
        stack.push(value, "step")
    for _ in range(MAX_STEPS + 50):
        stack.undo()
    assert stack.value == 49


def test_values_are_replaced_in_place():
    stack = UndoStack(1)
    stack.push(2, "two")
    stack.replace(lambda value: value * 10)
    assert (stack.value, stack.undo()) == (20, 10)
