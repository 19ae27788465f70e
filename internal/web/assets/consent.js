// The consent page says what will happen before it does, and the waiting page asks how its request stands.
"use strict";
(() => {
  const form = document.querySelector("[data-consent]");
  if (form) { choose(form); }

  function choose(form) {
    const connect = form.querySelector("[data-connect]"), effect = form.querySelector("[data-effect]"), missing = form.querySelector("[data-missing]"), summary = form.querySelector("summary");
    const ticked = (name) => Array.from(form.querySelectorAll("input[name=" + name + "]:checked"));
    const label = (input) => form.querySelector("label[for='" + CSS.escape(input.id) + "']").textContent.trim();
    const list = (names) => names.length < 2 ? names.join("") : names.slice(0, -1).join(", ") + " and " + names.at(-1);
    // A click that another page placed, or a second one of a double click, must not decide: only an act after a moment does.
    let acted = false, ready = false;
    setTimeout(() => { ready = true; show(); }, 800);
    for (const kind of ["pointermove", "pointerdown", "keydown"]) { addEventListener(kind, () => { if (!acted) { acted = true; show(); } }); }

    function show() {
      const heaps = ticked("heaps"), areas = ticked("areas"), write = ticked("write")[0]?.value === "yes", stay = ticked("stay")[0]?.value === "yes";
      const started = form.querySelector("input[name=started]"), yes = !started || ticked("started")[0]?.value === "yes";
      const why = !heaps.length ? "Choose at least one heap." : !areas.length ? "Choose at least one area." : !yes ? "Say first that you started it yourself." : "";
      summary.textContent = areas.length === form.querySelectorAll("input[name=areas]").length ? "All five areas. Choose" : areas.length + " of the five areas. Choose";
      missing.textContent = why;
      missing.hidden = !why;
      connect.disabled = !!why || !ready || !acted;
      if (why) { connect.setAttribute("aria-describedby", missing.id ||= "connect-missing"); } else { connect.removeAttribute("aria-describedby"); }
      connect.textContent = write ? "Connect with write access" : "Connect, read only";
      const memory = form.querySelector("input[name=propose_memory]");
      if (memory) { memory.disabled = !write; }
      const name = form.querySelector("input[name=name]").value.trim() || "It";
      effect.textContent = why ? "" : name + " will be able to " + (write ? "read and write " : "read ") + list(areas.map((a) => label(a).toLowerCase())) + " in " + list(heaps.map(label)) + ". " +
        (write ? "" : "It can't change anything. ") + (stay ? "It stays connected until you end it, or after 90 days unused." : "Access ends in about 1 hour.");
    }
    form.addEventListener("change", (e) => {
      if (e.target.name === "agent" && e.target.dataset.heaps !== undefined) { // begin with what that agent sees; writing stays a choice of its own
        const has = e.target.dataset.heaps.split(" ");
        for (const h of form.querySelectorAll("input[name=heaps]")) { h.checked = has.includes(h.value); }
        const areas = e.target.dataset.areas.split(" "); // none named is all
        for (const a of form.querySelectorAll("input[name=areas]")) { a.checked = !areas[0] || areas.includes(a.value); }
      }
      show();
    });
    form.addEventListener("input", show);
    form.addEventListener("submit", () => { // app.js refuses a second one; here the buttons show it
      setTimeout(() => { for (const b of form.querySelectorAll("button")) { b.disabled = true; } });
    });
    addEventListener("pageshow", (e) => { if (e.persisted) { location.reload(); } });
    show();
  }

  const box = document.querySelector("[data-status]");
  if (box) { watch(box); }

  function watch(box) {
    const lost = document.querySelector("[data-lost]");
    let timer, fails = 0;
    async function ask() {
      clearTimeout(timer);
      try {
        const answer = await fetch(box.dataset.status, { headers: { Accept: "application/json" } });
        if (answer.status === 404) { location.reload(); return; }
        if (!answer.ok) { throw new Error(answer.status); }
        const now = await answer.json();
        lost.hidden = true;
        fails = 0;
        if (now.continue) { location.assign(now.continue); box.textContent = "Answered. Going back to the program."; return; }
        if (now.state !== "open") { location.reload(); return; }
      } catch {
        fails++;
        lost.hidden = false;
      }
      timer = setTimeout(ask, Math.min(2000 * 2 ** fails, 15000));
    }
    document.querySelector("[data-retry]").addEventListener("click", ask);
    timer = setTimeout(ask, 1500);
  }
})();
