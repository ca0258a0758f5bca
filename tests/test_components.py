"""Components of Vue and Svelte: their words are text, their programs code."""

import pytest
from read_files import only, read

CARD = """<template>
  <section class="card">
    <h2>Borrowing a kayak</h2>
    <template v-if="isOpen"><p>Kayaks are lent for <b>two hours</b>, {{ user }}.</p></template>
    <button @click="n > 1 && lend()">Borrow now</button>
  </section>
</template>

<script setup lang="ts">
// Fees are charged from the third loan on.
const fee = ref('<template>')
</script>

<style scoped>
.card { color: #036; }
</style>
"""


@pytest.mark.parametrize(("name", "language"), [("Card.vue", "Vue"), ("Card.svelte", "Svelte")])
def test_what_a_component_shows_is_text_and_its_program_code(name: str, language: str) -> None:
    written = CARD
    if language == "Svelte":
        written = "\n".join(line for line in CARD.split("\n") if line.strip("</>") != "template")
    document = only(read(name, written))
    shown, code = document.text.split("\n\n// ")
    assert shown.split("\n\n") == [
        "Borrowing a kayak",
        "Kayaks are lent for two hours, {{ user }}.",
        "Borrow now",
    ]
    assert code.startswith("Fees are charged from the third loan on.\nconst fee = ref(")
    assert (document.title, document.metadata) == (name, {"language": language})
    blocks = [document.text[block.start : block.end].strip() for block in document.blocks]
    program = "const fee = ref('<template>')\n\n.card { color: #036; }"
    assert blocks == ["Borrowing a kayak", program]


def test_a_template_in_pug_is_code() -> None:
    document = only(read("a.vue", '<template lang="pug">\np Kayaks are lent.\n</template>\n'))
    assert document.text == "p Kayaks are lent."
    assert [block.kind for block in document.blocks] == ["code"]
