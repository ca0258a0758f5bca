function reveal() {
  var target = location.hash && document.getElementById(location.hash.slice(1));
  for (var at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  if (target) target.scrollIntoView();
}
addEventListener("hashchange", reveal);
addEventListener("load", reveal);
addEventListener("beforeprint", function () {
  document.querySelectorAll("details").forEach(function (d) { d.open = true; });
});
