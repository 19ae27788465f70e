// Signing in. The twelve words never leave the page: a key is made of them here, and only its signature is sent.
"use strict";
(() => {
  const bytes = (text) => new TextEncoder().encode(text);
  const hex = (buffer) => Array.from(new Uint8Array(buffer), (b) => b.toString(16).padStart(2, "0")).join("");
  const from64 = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
  const to64 = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");

  async function ask(path, body) {
    let answer, data = {};
    try {
      answer = await fetch("/api/account/" + path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body || {}) });
      data = await answer.json();
    } catch {
      throw new Error("The server doesn't answer. Try again.");
    }
    if (!answer.ok) { throw Object.assign(new Error(data.message || "The server refused this."), { reason: data.reason, field: data.field }); }
    return data;
  }

    const home = () => "http://localhost" + (location.port ? ":" + location.port : "") + location.pathname + location.search + location.hash;
  async function whyNoKeys() {
    if (!isSecureContext || !crypto.subtle) {
      return "This page came over plain http, where browsers lend no cryptography. Open it as http://localhost" + (location.port ? ":" + location.port : "") +
        " on the server's own machine, or put TLS in front of Cairn and set PUBLIC_URL to its https address.";
    }
    try {
      await keyOf(new Uint8Array(32));
    } catch {
      return "This browser can't sign with Ed25519. Use Chrome or Edge from 137, Firefox from 129, or Safari from 17.";
    }
    return "";
  }
  const isAddress = /^(\d+\.){3}\d+$|^\[/.test(location.hostname);
  const isLoopback = /^127\.|^\[::1\]$/.test(location.hostname);
  function whyNoPasskeys() {
    if (isAddress) {
      return isLoopback ? "Passkeys need a name, and this page was opened by the number " + location.hostname + "."
        : "Passkeys need a name, and this server was opened by its number. Use the server's name instead.";
    }
    return window.PublicKeyCredential ? "" : "This browser has no passkeys.";
  }
  function tell(box, text, link) {
    box.replaceChildren(text);
    if (link) {
      const a = document.createElement("a");
      a.href = home(); a.textContent = "Open this page as localhost"; box.append(" ", a, ".");
    }
    box.hidden = false;
  }

  // Words by BIP39; the key is the seed's first 32 bytes.
  let list;
  async function words(url) { return list ||= (await (await fetch(url)).text()).trim().split("\n"); }
  async function newWords(url) {
    const all = await words(url), entropy = crypto.getRandomValues(new Uint8Array(16));
    const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", entropy))[0] >> 4;
    const bits = Array.from(entropy, (b) => b.toString(2).padStart(8, "0")).join("") + sum.toString(2).padStart(4, "0");
    return bits.match(/.{11}/g).map((b) => all[parseInt(b, 2)]);
  }
  async function readWords(text, url) {
    const all = await words(url), got = text.normalize("NFKD").toLowerCase().trim().split(/[\s,;]+/).filter((w) => !/^\d+\.?$/.test(w));
    const odd = got.find((w) => !all.includes(w));
    if (odd !== undefined && odd !== "") { throw new Error("“" + odd.slice(0, 40) + "” is none of the words that are used. Check its spelling."); }
    if (got.length !== 12) { throw new Error("There must be twelve words, not " + got.filter(Boolean).length + "."); }
    const bits = got.map((w) => all.indexOf(w).toString(2).padStart(11, "0")).join("");
    const entropy = Uint8Array.from(bits.slice(0, 128).match(/.{8}/g), (b) => parseInt(b, 2));
    const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", entropy))[0] >> 4;
    if (sum !== parseInt(bits.slice(128), 2)) { throw new Error("These words don't belong together: one is wrong, or their order is."); }
    return got;
  }
  function keyOf(seed) {
    const der = new Uint8Array(48);
    der.set(Uint8Array.from("302e020100300506032b657004220420".match(/../g), (b) => parseInt(b, 16)));
    der.set(seed, 16);
    return crypto.subtle.importKey("pkcs8", der, "Ed25519", true, ["sign"]);
  }
  async function sign(list, message) {
    const base = await crypto.subtle.importKey("raw", bytes(list.join(" ").normalize("NFKD")), "PBKDF2", false, ["deriveBits"]);
    const seed = await crypto.subtle.deriveBits({ name: "PBKDF2", hash: "SHA-512", salt: bytes("mnemoniccairn"), iterations: 2048 }, base, 512);
    const key = await keyOf(new Uint8Array(seed).slice(0, 32));
    const open = (await crypto.subtle.exportKey("jwk", key)).x;
    return { public: hex(from64(open)), signature: hex(await crypto.subtle.sign("Ed25519", key, bytes(message))) };
  }

  // Passkeys, with and without the browser's own reading of JSON.
  const K = window.PublicKeyCredential;
  function plain(c) {
    if (c.toJSON) { return c.toJSON(); }
    const r = c.response, out = {};
    for (const name of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]) { if (r[name]) { out[name] = to64(r[name]); } }
    if (r.getTransports) { out.transports = r.getTransports(); }
    return { id: c.id, rawId: to64(c.rawId), type: c.type, response: out, clientExtensionResults: c.getClientExtensionResults(), authenticatorAttachment: c.authenticatorAttachment };
  }
  const known = (all) => (all || []).map((c) => ({ ...c, id: from64(c.id) }));
  async function usePasskey(options) {
    const o = options.publicKey || options;
    const publicKey = K.parseRequestOptionsFromJSON ? K.parseRequestOptionsFromJSON(o) : { ...o, challenge: from64(o.challenge), allowCredentials: known(o.allowCredentials) };
    return plain(await navigator.credentials.get({ publicKey }));
  }
  async function makePasskey(name) {
    const { challenge, options } = await ask("passkey/begin");
    const o = options.publicKey || options;
    const publicKey = K.parseCreationOptionsFromJSON ? K.parseCreationOptionsFromJSON(o)
      : { ...o, challenge: from64(o.challenge), user: { ...o.user, id: from64(o.user.id) }, excludeCredentials: known(o.excludeCredentials) };
    const passkey = plain(await navigator.credentials.create({ publicKey }));
    return ask("passkey/finish", { challenge, name, passkey });
  }

  const box = document.querySelectorAll("[data-signin]");
  for (const root of box) { start(root); }

  function start(root) {
    const one = (selector) => root.querySelector(selector);
    const kind = root.dataset.signin, next = root.dataset.next || "/agents";
    const line = one("[data-problem]") || document.getElementById("sign-in-problem");
    const fields = { name: "account-name", zone: "account-zone", email: "account-email" };

    function fail(e) {
      if (e.reason === "prove_again") { location.assign("/prove?next=" + encodeURIComponent(location.pathname)); return; }
      const quiet = { NotAllowedError: "The passkey was not used, or it took too long.", InvalidStateError: "This device has a passkey for this account already." };
      line.textContent = quiet[e.name] || e.message;
      line.hidden = false;
      const field = e.field && document.getElementById(fields[e.field]);
      if (field) { field.setAttribute("aria-invalid", "true"); field.focus(); } else { line.focus(); }
    }
    function on(form, act) {
      form?.addEventListener("submit", async (e) => {
        e.preventDefault();
        if (form.getAttribute("aria-busy") === "true") { return; }
        form.setAttribute("aria-busy", "true");
        line.hidden = true;
        for (const wrong of root.querySelectorAll("[aria-invalid]")) { wrong.removeAttribute("aria-invalid"); }
        try { await act(); } catch (x) { fail(x); } finally { form.removeAttribute("aria-busy"); }
      });
    }
    function arrived() {
      const again = one("[data-again]");
      if (again) { again.submit(); } else { location.assign(next); }
    }
    function showStep(name) {
      one("[data-form=account]").hidden = true;
      for (const s of root.querySelectorAll("[data-step]")) { s.hidden = s.dataset.step !== name; }
      one("[data-step=" + name + "] h2").focus();
    }
    let made;
    async function showWords() {
      const part = one("[data-new-words]");
      made = await newWords(part.dataset.newWords);
      const ol = part.querySelector("ol");
      ol.replaceChildren(...made.map((w) => Object.assign(document.createElement("li"), { textContent: w })));
      ol.dataset.text = made.join(" ");
      part.hidden = false;
    }
    async function signed(purpose) {
      const c = await ask("challenge", { purpose });
      return { challenge: c.id, phrase: await sign(made, c.message) };
    }
    const said = () => ({ name: one("[data-in=name]").value, zone: one("[data-in=zone]").value, email: one("[data-in=email]").value });
    const device = () => { const f = one("[data-name]"); if (f && !f.value) { f.value = (navigator.userAgentData?.platform || navigator.platform || "").slice(0, 60); } };

    (async () => {
      const noKeys = await whyNoKeys(), noPasskeys = isSecureContext ? whyNoPasskeys() : noKeys, why = one("[data-why]");
      if (kind === "sign-in" || kind === "prove" || kind === "consent") {
        one("[data-form=phrase]").hidden = !!noKeys;
        one("[data-way=passkey]").hidden = !!noPasskeys;
        if (noKeys) { tell(why, noKeys); } else if (noPasskeys) { tell(why, noPasskeys, isLoopback); }
        const done = async (proof) => {
          const form = one("[data-proof]"); // consent: the proof goes with a form, and no session begins
          if (form) { form.elements.proof.value = JSON.stringify(proof); form.submit(); } else { await ask(kind, proof); arrived(); }
        };
        const begin = () => kind === "consent" ? ask("consent", { request: root.dataset.request }) : ask("challenge", { purpose: kind });
        on(one("[data-form=phrase]"), async () => {
          const form = one("[data-form=phrase]"), got = await readWords(form.querySelector("textarea").value, form.dataset.words);
          const c = await begin();
          await done({ challenge: c.id, phrase: await sign(got, c.message) });
        });
        on(one("[data-form=passkey]"), async () => {
          const c = await begin();
          if (!c.passkey) { throw new Error("The server offers no passkeys at this address."); }
          await done({ challenge: c.id, passkey: await usePasskey(c.passkey) });
        });
      } else if (kind === "sign-up") {
        if (noKeys) { tell(why, noKeys); return; }
        await showWords();
        one("form").hidden = false;
        on(one("form"), async () => { await ask("sign-up", { ...said(), ...await signed("sign-up") }); location.assign("/agents"); });
      } else if (kind === "setup") {
        if (noKeys) { tell(why, noKeys); return; }
        const secret = location.hash.slice(1), form = one("[data-form=account]");
        if (!secret) { one("[data-no-link]").hidden = false; return; }
        const who = await ask("link", { secret });
        one("[data-in=name]").value = who.name; one("[data-in=email]").value = who.email;
        if (who.has_phrase) { one("[data-replaces]").hidden = false; one("[data-in=zone]").value = who.zone; }
        await showWords();
        form.hidden = false;
        on(form, async () => {
          await ask("set-up", { secret, ...said(), ...await signed("set-up") });
          history.replaceState(null, "", location.pathname);
          device();
          showStep(noPasskeys ? "connect" : "passkey");
        });
        on(one("[data-form=passkey]"), async () => { await makePasskey(one("[data-name]").value); showStep("connect"); });
        one("[data-skip]").addEventListener("click", () => showStep("connect"));
      } else if (kind === "add-passkey") {
        if (noPasskeys) { tell(why, noPasskeys, isLoopback); return; }
        one("form").hidden = false;
        device();
        on(one("form"), async () => { await makePasskey(one("[data-name]").value); location.assign("/settings?done=passkey-added"); });
      } else if (kind === "new-phrase") {
        if (noKeys) { tell(why, noKeys); return; }
        one("form").hidden = false;
        one("[data-make]").addEventListener("click", async () => { await showWords(); one("[data-make]").hidden = true; one("[data-save]").hidden = false; one("ol").focus(); });
        on(one("form"), async () => { await ask("phrase", await signed("add")); location.assign("/settings?done=phrase-replaced"); });
      }
    })().catch(fail);
  }
})();
