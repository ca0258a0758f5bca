"""Exports of chats and logs: what was said, by whom and when, and nothing of it a name."""

import json
from pathlib import Path

import pytest
from bombs import zipped
from read_files import only, read

from conftest import Engine
from graphrag_pipeline.ingest.reading import ReadDocument
from graphrag_pipeline.ingest.stages import ingest_documents

CHAT = {
    "name": "Export",
    "messages": [
        {
            "author": {"name": "Ana"},
            "create_time": 1714557600,
            "content": {"parts": ["Did Viggo Stahl pay?"]},
        },
        {"author": {"name": "Bo"}, "content": {"parts": ["Viggo Stahl paid on Monday."]}},
    ],
}
TEAMS = {
    "topic": "Quay 4",
    "messages": [
        {
            "createdDateTime": "2024-05-01T10:00:00Z",
            "from": {"user": {"displayName": "Ana Berg"}},
            "body": {
                "contentType": "html",
                "content": "<p>Is the crane &amp; rope <b>here</b>?</p>",
            },
        },
        {
            "createdDateTime": "2024-05-01T10:01:00Z",
            "from": {"user": {"displayName": "Bo Li"}},
            "body": {"contentType": "text", "content": "Yes."},
        },
    ],
}
TELEGRAM = {
    "name": "Pumps",
    "type": "personal_chat",
    "id": 7,
    "messages": [
        {
            "id": 1,
            "type": "message",
            "date": "2024-05-01T10:00:00",
            "from": "Ana",
            "text": ["See ", {"type": "link", "text": "https://x.org"}, " now"],
        }
    ],
}


def chat(value: object, name: str = "a.json") -> ReadDocument:
    return only(read(name, json.dumps(value)))


def test_a_conversation_is_one_document_with_a_line_for_each_message() -> None:
    document = chat(CHAT)
    assert document.text == (
        "[2024-05-01 10:00] Ana: Did Viggo Stahl pay?\n[undated] Bo: Viggo Stahl paid on Monday."
    )
    assert (document.title, document.metadata["from"], document.metadata["date"]) == (
        "Export",
        "Ana, Bo",
        "2024-05-01T10:00:00+00:00",
    )


def test_exports_of_many_programs_are_read() -> None:
    assert chat(TEAMS).text == (
        "[2024-05-01 10:00] Ana Berg: Is the crane & rope here?\n[2024-05-01 10:01] Bo Li: Yes."
    )
    assert chat(TELEGRAM).text == "[2024-05-01 10:00] Ana: See https://x.org now"
    both = read("a.json", json.dumps([CHAT, {**TELEGRAM, "id": "t"}]))
    assert {d.key: d.title for d in both.documents} == {"conversation-1": "Export", "t": "Pumps"}
    alone = chat({"messages": CHAT["messages"]})
    assert (alone.title, alone.text) == ("Conversation of Ana, Bo", chat(CHAT).text)
    slack = {"messages": [{"user": "U1", "text": "Hester sails.", "ts": "1714557600.000200"}]}
    assert chat(slack).text == "[2024-05-01 10:00] U1: Hester sails."


def test_a_day_of_a_channel_as_slack_exports_it_is_one_conversation() -> None:
    said = {"type": "message", "ts": "1714557600.000200", "user": "U1"}
    ulla = {"display_name": "", "real_name": "Ulla Brandt"}
    day = [{**said, "user_profile": ulla, "text": "Hester sails."}, {**said, "text": "When?"}]
    document = chat(day)
    assert document.text == (
        "[2024-05-01 10:00] Ulla Brandt: Hester sails.\n[2024-05-01 10:00] Ulla Brandt: When?"
    )
    assert document.title == "Conversation of Ulla Brandt"
    letters = [{"type": "letter", "from": "Ana", "text": "Dear Bo."} for _ in range(2)]
    assert len(read("a.json", json.dumps(letters)).documents) == 2


def test_a_room_of_matrix_is_called_by_its_name() -> None:
    assert chat({"room_name": "Garden", "messages": CHAT["messages"]}).title == "Garden"


def test_what_is_no_conversation_is_read_as_before() -> None:
    poem = {"title": "Tides", "comments": [{"text": "Fine."}], "text": "The tide turns."}
    assert chat(poem).text.startswith("The tide turns.")
    ships = {"messages": [{"name": "Frida", "tons": 4}, {"name": "Alma", "tons": 9}]}
    assert [d.title for d in read("a.json", json.dumps(ships)).documents] == ["Frida", "Alma"]
    numbers = {"messages": [{"from": 1, "date": 1e400, "text": 4}], "title": "T", "text": "A word."}
    assert chat(numbers).text.startswith("A word.")


def test_what_a_log_says_is_read_as_a_sentence_and_not_as_a_name() -> None:
    said = ["disk full on host amber-3", "host amber-3 recovered by Ulla Brandt"]
    lines = [json.dumps({"level": "ERROR", "msg": text}) for text in said]
    result = read("log.jsonl", "\n".join([lines[0], "{broken", lines[1]]))
    for document, text in zip(result.documents, said, strict=True):
        marked = [document.text[b.start : b.end] for b in document.blocks]
        assert f"msg: {text}" in document.text
        assert not any(text in part for part in marked)


def test_who_is_meant_in_slack_is_named_and_its_marks_are_words() -> None:
    said = {"type": "message", "ts": "1714557600.000200"}
    profile = {"display_name": "ylva", "real_name": "Ylva Brink"}
    day = [
        {
            **said,
            "user": "U1",
            "user_profile": profile,
            "text": "Did <https://x.org|Kran AB> sign?",
        },
        {**said, "user": "U2", "text": "Yes, <@U1> &amp; <mailto:a@x.org|a@x.org> in <#C1|quay>"},
        {**said, "user": "U3", "subtype": "channel_join", "text": "<@U3> has joined the channel"},
        {**said, "username": "CI", "text": "Build 8", "attachments": [{"text": "3 tests failed"}]},
    ]
    assert chat(day).text == (
        "[2024-05-01 10:00] Ylva Brink: Did Kran AB sign?\n"
        "[2024-05-01 10:00] U2: Yes, Ylva Brink & a@x.org in #quay\n"
        "[2024-05-01 10:00] CI: Build 8\n3 tests failed"
    )


def test_entries_that_nobody_says_leave_a_conversation_one() -> None:
    ola = {"id": 1, "type": "service", "date": "2024-05-01T09:00:00", "actor": "Ola"}
    assert chat({**TELEGRAM, "messages": [ola, *TELEGRAM["messages"]]}).text == chat(TELEGRAM).text
    author = {"id": "7", "name": "oddv", "nickname": "Oddvar Lie"}
    said = {"timestamp": "2024-05-01T10:00:00+00:00", "author": author, "type": "Default"}
    picture = {**said, "content": "", "attachments": [{"fileName": "a.png"}]}
    discord = {"messages": [picture, {**said, "content": "Marit Haug has the key"}]}
    assert chat(discord).text == "[2024-05-01 10:00] Oddvar Lie: Marit Haug has the key"


def test_who_deleted_an_account_keeps_the_conversation_and_is_called_by_its_id() -> None:
    gone = {
        "type": "message",
        "date": "2024-05-01T10:04:00",
        "from": None,
        "from_id": "user3",
        "text": "Ask Ulla Brandt",
    }
    document = chat({**TELEGRAM, "messages": [*TELEGRAM["messages"], gone]})
    assert document.text == (
        "[2024-05-01 10:00] Ana: See https://x.org now\n[2024-05-01 10:04] user3: Ask Ulla Brandt"
    )


def test_a_tree_of_messages_is_read_along_what_was_shown_last():
    def node(key, parent, role, said):
        parts = {"content_type": "text", "parts": [said]}
        message = {"author": {"role": role}, "create_time": 1709546400.0, "content": parts}
        return {key: {"id": key, "parent": parent, "children": [], "message": message}}

    nodes = {"root": {"id": "root", "parent": None, "children": ["s"], "message": None}}
    nodes |= node("s", "root", "system", "") | node("a", "s", "user", "Who repairs it?")
    nodes |= node("b", "a", "assistant", "Nobody.") | node("c", "a", "assistant", "Baltor Freight.")
    chat = {"id": "c1", "title": "Ferry", "mapping": nodes, "current_node": "c"}
    document = only(read("conversations.json", json.dumps([chat])))
    assert document.text == (
        "[2024-03-04 10:00] user: Who repairs it?\n[2024-03-04 10:00] assistant: Baltor Freight."
    )
    assert document.title == "Ferry"
    nodes["b"]["parent"] = "b"
    told = json.dumps([{**chat, "current_node": "b"}])
    assert only(read("conversations.json", told)).text.endswith("assistant: Nobody.")


def test_posts_of_an_archive_are_lines_with_their_time_and_without_tags() -> None:
    note = {
        "type": "Note",
        "published": "2023-05-04T08:00:00Z",
        "attributedTo": "https://social.example/users/lena",
        "content": '<p>The ferry to <a href="https://x.example"><span>Hiiu</span><span>maa'
        "</span></a> was late &amp; cold.</p><p>We waited.</p>",
    }
    shared = {"type": "Announce", "object": "https://other.example/users/bob/statuses/7"}
    warned = {**note, "summary": "Weather", "content": "<p>It snowed.</p>"}
    created = [{"type": "Create", "object": each} for each in (note, warned)]
    outbox = {"type": "OrderedCollection", "orderedItems": [created[0], shared, created[1]]}
    document = chat(outbox, "outbox.json")
    assert document.text == (
        "[2023-05-04 08:00] lena: The ferry to Hiiumaa was late & cold. We waited.\n"
        "[2023-05-04 08:00] lena: Weather: It snowed."
    )
    assert document.metadata["date"] == "2023-05-04T08:00:00Z"


def test_tweets_of_an_archive_are_posts_and_other_scripts_are_code() -> None:
    tweet = {
        "created_at": "Wed Jan 05 09:30:00 +0000 2022",
        "full_text": "Low tide &amp; fog at the quay.",
        "source": "<a>Web</a>",
    }
    script = f"window.YTD.tweets.part0 = {json.dumps([{'tweet': tweet}])}"
    assert only(read("tweets.js", script)).text == "[2022-01-05 09:30] Low tide & fog at the quay."
    like = "window.YTD.like.part0 = " + json.dumps([{"like": {"fullText": "Seals at Sule."}}])
    assert "fullText: Seals at Sule." in only(read("like.js", like)).text
    for code in ("window.YTD.tweets.part0 = [", "const quay = 4; // Where ships moor.\n"):
        assert only(read("a.js", code)).metadata["language"] == "JavaScript"


def slack_export(user: str = "Ylva Brink") -> dict[str, str]:
    said = {"type": "message", "ts": "1714557600.000200", "user": "U012AB3CD"}
    tracked = {**said, "user": None, "username": "tracker", "text": ""}
    issue = {"title": "[QW-17] Brake", "text": "For <@U012AB3CD>", "fallback": "QW-17"}
    day = [
        {**said, "text": "Ask <@U034EF5GH> in <#C0B>"},
        {**tracked, "attachments": [issue, {"fallback": "Closed"}]},
        {**said, "text": "", "files": [{"title": "brakes.pdf"}]},
    ]
    users = [
        {"id": "U012AB3CD", "name": "ylva", "real_name": user, "profile": {"real_name": user}},
        {"id": "U034EF5GH", "name": "tomas", "profile": {"real_name": "Tomas Okafor"}},
    ]
    return {
        "users.json": json.dumps(users),
        "channels.json": json.dumps([{"id": "C0B", "name": "reports"}]),
        "dms.json": json.dumps([{"id": "D0A", "members": ["U012AB3CD", "U034EF5GH"]}]),
        "quays/2024-05-01.json": json.dumps(day),
        "D0A/2024-05-02.json": json.dumps([{**said, "text": "Hello"}]),
    }


SLACK_DAY = (
    "[2024-05-01 10:00] Ylva Brink: Ask Tomas Okafor in #reports\n"
    "[2024-05-01 10:00] tracker: [QW-17] Brake\nFor Ylva Brink\nClosed\n"
    "[2024-05-01 10:00] Ylva Brink: brakes.pdf"
)


def test_who_is_meant_in_a_packed_export_of_slack_is_named() -> None:
    read_documents = read("a.zip", zipped(slack_export())).documents
    texts = {document.title: document.text for document in read_documents}
    assert texts["quays 2024-05-01"] == SLACK_DAY
    assert texts["Ylva Brink, Tomas Okafor 2024-05-02"].endswith("Ylva Brink: Hello")
    assert texts["Ylva Brink"].startswith("real_name: Ylva Brink")
    alone = read(
        "a.zip", zipped({"quays/2024-05-01.json": slack_export()["quays/2024-05-01.json"]})
    )
    assert "U012AB3CD: Ask U034EF5GH in #C0B" in only(alone).text


def test_an_export_of_slack_in_a_folder_is_read_again_when_its_lists_change(
    tmp_path: Path,
) -> None:
    engine = Engine(tmp_path)
    folder = {f"kelm/{name}": text for name, text in slack_export().items()}

    def update() -> str:
        for batch in engine.cut():
            ingest_documents(engine.store, engine.log, engine.settings, batch.key)
        return engine.rows(
            """SELECT text FROM staging.documents
               WHERE source LIKE '%quays/2024-05-01.json' ORDER BY batch DESC"""
        )[0][0]

    engine.write({**folder, "kelm/other.json": "[]", "users.json": "[]"})
    assert update() == SLACK_DAY
    engine.write({"kelm/users.json": slack_export("Ylva Holm")["users.json"]})
    assert update() == SLACK_DAY.replace("Ylva Brink", "Ylva Holm")
    assert engine.cut() == []
    (engine.inbox / "kelm" / "users.json").unlink()
    changed = {c.uri: c.action for batch in engine.cut() for c in batch.changes}
    assert changed == {
        "documents/kelm/users.json": "remove",
        "documents/kelm/quays/2024-05-01.json": "change",
        "documents/kelm/D0A/2024-05-02.json": "change",
    }


@pytest.mark.parametrize(
    ("name", "exported"),
    [
        (
            "Quay.csv",
            '"From","Date/Time","Message"\n"Ana","2024-05-01 09:14","Is the crane here?"\n'
            '"Bo Li","2024-05-01 09:15","Yes, at quay 4."\n',
        ),
        (
            "Quay.jsonl",
            '{"from": "Ana", "createdDateTime": "2024-05-01T09:14:00Z", "message": '
            '"Is the crane here?"}\n{"from": "Bo Li", "createdDateTime": "2024-05-01T09:15:07Z", '
            '"message": "Yes, at quay 4."}\n',
        ),
        (
            "Quay.csv",
            "AuthorID,Author,Date,Content,Attachments,Reactions\n"
            "1,Ana,2024-05-01T09:14:05.1230000+01:00,Is the crane here?,,\n"
            '2,Bo Li,2024-05-01T09:15:05.1230000+01:00,"Yes, at quay 4.",,ok (1)\n',
        ),
        (
            "Quay.csv",
            "Sender,Date,Time,Message\nAna,5/1/2024,9:14 AM,Is the crane here?\n"
            'Bo Li,5/1/2024,9:15 AM,"Yes, at quay 4."\n',
        ),
    ],
)
def test_a_chat_that_is_exported_as_a_table_is_one_conversation(name: str, exported: str) -> None:
    document = only(read(name, exported))
    assert document.text == (
        "[2024-05-01 09:14] Ana: Is the crane here?\n[2024-05-01 09:15] Bo Li: Yes, at quay 4."
    )
    assert (document.key, document.title) == ("", "Quay")
    assert document.metadata == {"from": "Ana, Bo Li", "date": "2024-05-01T09:14"}


@pytest.mark.parametrize(
    "columns", ["author,date,text", "from,date,message,subject", "from,message,id"]
)
def test_a_table_of_texts_with_their_authors_is_no_chat(columns: str) -> None:
    rows = "Ana,2024-01-02,Good book.,a\nBo,2024-01-03,Bad book.,b\n"
    n_columns = columns.count(",") + 1
    cut = "".join(",".join(row.split(",")[:n_columns]) + "\n" for row in rows.splitlines())
    assert len(read("a.csv", f"{columns}\n{cut}").documents) == 2


def test_a_chat_of_teams_is_a_conversation_as_graph_and_as_the_export_of_an_account_give_it() -> (
    None
):
    def message(name: str, minute: int, content: str, **more: object) -> dict[str, object]:
        body = {"contentType": "html", "content": content}
        said = {"messageType": "message", "createdDateTime": f"2025-03-17T09:{minute:02}:00Z"}
        return {
            **said,
            "from": {"application": None, "user": {"displayName": name}},
            "body": body,
            **more,
        }

    answer = message("Per Holm", 2, 'Ask <at id="0">Rosa Lind</at> &amp; wait')
    first = message("Ida Moen", 1, "<div>Quay <b>4</b> is shut</div>", replies=[answer])
    gone = message("Per Holm", 3, "", deletedDateTime="2025-03-17T09:04:00Z")
    added = {"messageType": "unknownFutureValue", "from": None, "body": {"content": "<e/>"}}
    said = "[2025-03-17 09:01] Ida Moen: Quay 4 is shut"
    said += "\n[2025-03-17 09:02] Per Holm: Ask Rosa Lind & wait"
    for value in ([first, added, gone], {"@odata.count": 3, "value": [first, added, gone]}):
        assert only(read("a.json", json.dumps(value))).text == said

    def sent(who: str, minute: int, content: str, kind: str) -> dict[str, object]:
        when = f"2025-03-17T09:{minute:02}:00.1Z"
        known = {"displayName": who, "from": "8:ida", "messagetype": kind}
        return {**known, "originalarrivaltime": when, "content": content}

    messages = [
        sent("Per Holm", 2, "<p>Ask Rosa Lind &amp; wait</p>", "RichText/Html"),
        sent("Ida Moen", 1, "Quay 4 is shut", "Text"),
        sent("", 0, "<addmember/>", "ThreadActivity/AddMember"),
    ]
    quay = {"id": "19:q", "displayName": "Quay team", "MessageList": messages}
    account = {"userId": "8:Ida", "exportDate": "2025-03-20T10:00", "conversations": [quay]}
    document = only(read("messages.json", json.dumps(account)))
    assert (document.key, document.title, document.text) == ("19:q", "Quay team", said)
