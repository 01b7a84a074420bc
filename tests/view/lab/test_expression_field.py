from __future__ import annotations

import pytest

from rlnb.view.lab.charts.expression_field import ExpressionField, Suggestion


def typed(field, text, edit="a:1"):
    field._msg_callbacks(field, {"text": text, "edit": edit}, [])


@pytest.fixture
def sent(monkeypatch):
    sent = []
    monkeypatch.setattr(ExpressionField, "send_state", lambda self, key=None: sent.append(set(key or ())))
    return sent


def test_what_is_typed_arrives_once_and_its_answer_is_one_message(sent):
    field, heard = ExpressionField(), []

    def check(text):
        heard.append(text)
        field.show_error("there is no vv", 2, 2)

    field.on_change(check)
    sent.clear()
    typed(field, "a+vv")
    assert heard == ["a+vv"]
    assert sent == [{"edit", "value", "checked", "error", "error_position", "error_length"}]
    typed(field, "a+vv", "a:2")
    assert heard == ["a+vv"]
    assert field.edit == "a:2"


def test_an_error_belongs_to_the_text_it_was_found_in():
    field = ExpressionField(value="x +")
    field.show_error("It ends too early.", 3)
    assert (field.checked, field.error, field.error_position, field.error_length) == (
        "x +", "It ends too early.", 3, 1,
    )  # fmt: skip
    field.value = "x + y_dot*2"
    field.show_error("There is no y_dot.", 4)
    assert field.error_length == 5
    field.value = "x + y"
    assert field.checked == "x + y_dot*2"
    field.clear_error()
    assert (field.checked, field.error, field.error_position) == ("x + y", "", None)


def test_setting_the_text_in_python_is_no_typing():
    field, heard = ExpressionField(), []
    field.on_change(heard.append)
    field.value = "x"
    assert heard == []


def test_suggestions_are_short_on_the_wire():
    field = ExpressionField()
    field.suggestions = [Suggestion("vy", "observation"), Suggestion("hypot(", "function")]
    assert field.names == [["vy", "observation"], ["hypot(", "function"]]
    assert field.suggestions[1] == Suggestion("hypot(", "function")


def test_only_well_formed_messages_are_heard():
    field = ExpressionField(value="x")
    for content in ({"text": 3, "edit": "a"}, {"text": "y"}, "y", {}):
        field._msg_callbacks(field, content, [])
    assert field.value == "x"


def test_it_does_not_carry_the_plotting_library():
    assert len(ExpressionField._esm) < 20_000
