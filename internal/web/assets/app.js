// What pages do beyond plain forms: copy a text, say the status aloud, close the menu, keep a form from being sent twice.
"use strict";
(() => {
  const all = (selector) => document.querySelectorAll(selector);
  const say = (text) => { const line = document.getElementById("status"); if (line) { line.textContent = text; } };

  // Copying needs a secure page; elsewhere the text is marked, for the keyboard's own copy.
  for (const button of all("[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const from = document.getElementById(button.dataset.copy);
      const text = from.dataset.text || from.textContent.trim();
      try {
        await navigator.clipboard.writeText(text);
        say("Copied.");
      } catch {
        getSelection().selectAllChildren(from);
        say("Marked. Copy it with Ctrl+C or Command+C.");
      }
    });
  }

  // A screen reader speaks a status line only when it changes.
  const line = document.getElementById("status");
  if (line && line.textContent.trim()) {
    const text = line.textContent;
    setTimeout(() => { line.replaceChildren(Object.assign(document.createElement("span"), { textContent: text })); }, 250);
    const here = new URL(location.href);
    if (here.searchParams.has("done")) { here.searchParams.delete("done"); history.replaceState(null, "", here); }
  }

  const errors = document.querySelector(".errors");
  if (errors && errors.hasAttribute("tabindex")) { errors.focus(); }

  for (const menu of all("details.menu")) {
    document.addEventListener("click", (e) => { if (!menu.contains(e.target)) { menu.open = false; } });
    menu.addEventListener("keydown", (e) => {
      if (e.key === "Escape" && menu.open) { menu.open = false; menu.querySelector("summary").focus(); }
    });
  }

  for (const form of all("form[method=post]")) {
    form.addEventListener("submit", (e) => {
      if (e.defaultPrevented) { return; }
      if (form.dataset.sent) { e.preventDefault(); return; }
      form.dataset.sent = "1";
      form.setAttribute("aria-busy", "true");
    });
  }
  addEventListener("pageshow", () => { for (const form of all("form[data-sent]")) { delete form.dataset.sent; form.removeAttribute("aria-busy"); } });

  // A time zone is guessed by the browser where none was chosen.
  for (const field of all("[data-guess=zone]")) {
    if (!field.value) { try { field.value = Intl.DateTimeFormat().resolvedOptions().timeZone || ""; } catch { /* left empty */ } }
  }
  for (const list of all("datalist[data-zones]")) {
    try { for (const zone of Intl.supportedValuesOf("timeZone")) { list.append(new Option(zone, zone)); } } catch { /* typed by hand */ }
  }
})();
