function reveal() {
  var target = location.hash && document.getElementById(location.hash.slice(1));
  for (var at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  if (target) target.scrollIntoView();
}
function filter() {
  var form = document.querySelector(".filter");
  if (!form) return;
  var words = form.querySelector("[type=search]"), type = form.querySelector("select");
  var differs = form.querySelector("[type=checkbox]"), told = form.querySelector("output");
  var rows = Array.from(document.querySelectorAll("#all tbody tr"));
  function apply() {
    var wanted = words.value.toLowerCase().split(/\s+/), shown = 0;
    rows.forEach(function (row) {
      var text = row.cells[0].textContent.toLowerCase();
      row.hidden = !wanted.every(function (word) { return text.includes(word); }) ||
        Boolean(type && type.value && row.dataset.type !== type.value) ||
        Boolean(differs && differs.checked && !("differs" in row.dataset));
      shown += !row.hidden;
    });
    told.textContent = shown === rows.length ? "" : shown + " of " + rows.length;
  }
  form.addEventListener("input", apply);
  form.hidden = false;
}
addEventListener("hashchange", reveal);
addEventListener("load", reveal);
addEventListener("beforeprint", function () {
  document.querySelectorAll("details").forEach(function (d) { d.open = true; });
});
filter();
