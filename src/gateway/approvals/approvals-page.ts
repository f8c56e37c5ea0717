import { createHash } from "node:crypto";
import { isPlainObject, parseJsonTextOrNone } from "../../core/json/json-value.ts";
import { escapeHidden, escapeHtml, safeText } from "../../core/text/clean-text.ts";
import type { AnswerHeaders, HttpAnswer } from "../../http/exchange.ts";
import type { ApprovalPerson } from "./approval-record.ts";
import type { ApprovalRefusal, ApprovalView } from "./approvals.ts";

/** What a page needs besides what it shows. */
export interface ApprovalsFrame {
  /** What the gateway calls itself. */
  readonly name: string;
  /** Who is signed in; nothing where nobody has to. */
  readonly subject?: string | undefined;
  /** Goes with every form, so that no form of another page is taken. */
  readonly csrf: string;
  /** From the page to the folder of all pages: `""`, or `"../"` for each level. */
  readonly up: string;
  /** Unix epoch milliseconds. */
  readonly now: number;
}

const STYLE = `
:root{color-scheme:light dark;--bg:#fbfaf8;--card:#fff;--ink:#1d1c1a;--soft:#67635c;--line:#dedad3;--mark:#8a5a00;--markbg:#fdf3dc;--go:#1f6f43;--goink:#fff;--no:#b3261e;--link:#1a5fa8}
@media (prefers-color-scheme:dark){:root{--bg:#171614;--card:#211f1c;--ink:#eceae6;--soft:#a49f96;--line:#3a3733;--mark:#f0c674;--markbg:#38301c;--go:#3f9c69;--goink:#08140d;--no:#ff8a80;--link:#7db7f2}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
header,main{max-width:46rem;margin:0 auto;padding:0 1rem}
header{display:flex;gap:.75rem;align-items:center;justify-content:space-between;flex-wrap:wrap;padding-top:1.25rem;color:var(--soft);font-size:.9rem}
h1{font-size:1.4rem;line-height:1.25;margin:1.5rem 0 1rem}
h2{font-size:1rem;margin:1.5rem 0 .5rem}
a{color:var(--link)}
code,pre,.mono{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:.9em}
.card{display:block;background:var(--card);border:1px solid var(--line);border-radius:.6rem;padding:.9rem 1rem;margin:0 0 .75rem;color:inherit;text-decoration:none}
a.card:hover,a.card:focus-visible{border-color:var(--link)}
.card b{font-size:1.05rem;overflow-wrap:anywhere}
.facts{color:var(--soft);font-size:.9rem;margin:.25rem 0 0}
dl{display:grid;grid-template-columns:minmax(7rem,auto) 1fr;gap:.4rem 1rem;margin:0}
dt{color:var(--soft);overflow-wrap:anywhere}
dd{margin:0;min-width:0;overflow-wrap:anywhere}
pre{margin:0;white-space:pre-wrap;overflow-wrap:anywhere}
.said{background:var(--markbg);border-left:3px solid var(--mark);border-radius:.3rem;padding:.6rem .8rem;margin:0}
.said small{display:block;color:var(--mark);font-weight:600}
.said p{margin:.2rem 0 0;white-space:pre-wrap;overflow-wrap:anywhere}
.tag{display:inline-block;border:1px solid currentColor;border-radius:1rem;padding:0 .5rem;font-size:.8rem;color:var(--no);vertical-align:.1em}
form{margin:1.5rem 0 0}
header form{margin:0}
label{display:block;margin:0 0 .75rem}
input{display:block;font:inherit;width:100%;margin-top:.25rem;padding:.5rem .6rem;color:inherit;background:var(--card);border:1px solid var(--line);border-radius:.4rem}
.actions{display:flex;gap:.75rem;flex-wrap:wrap}
button{font:inherit;font-weight:600;min-height:2.75rem;padding:.4rem 1.4rem;border-radius:.4rem;border:1px solid var(--line);background:var(--card);color:inherit;cursor:pointer}
button.go{background:var(--go);border-color:var(--go);color:var(--goink)}
button.no{border-color:var(--no);color:var(--no)}
header button{min-height:0;padding:.2rem .8rem;font-weight:400}
:focus-visible{outline:2px solid var(--link);outline-offset:2px}
@media (max-width:30rem){dl{grid-template-columns:1fr;gap:.1rem}dd{margin-bottom:.5rem}.actions button{flex:1}}
`;
const STYLE_HASH = createHash("sha256").update(STYLE).digest("base64");

const HEADERS: Readonly<AnswerHeaders> = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
  // With "no-referrer", browsers send forms with the origin "null".
  "referrer-policy": "same-origin",
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "cross-origin-opener-policy": "same-origin",
};

/** The page on which a person signs in. */
export function signInPage({ name, up }: Pick<ApprovalsFrame, "name" | "up">, isWrong: boolean): HttpAnswer {
  const told = isWrong ? text("That is no token of this gateway.") : "";
  const form = `${told}<form method="post" action="${up}approvals/sign-in"><label>Your token of this gateway<input name="token" type="password" autocomplete="current-password" required autofocus></label><div class="actions"><button class="go">Sign in</button></div></form>`;
  return page(isWrong ? 403 : 200, "Sign in to approve calls", { head: text(name, "span"), body: form });
}

/** The page that lists what waits. */
export function listPage(views: readonly ApprovalView[], frame: ApprovalsFrame): HttpAnswer {
  const waiting = views.filter(({ state }) => state === "waiting");
  const decided = views.filter(({ state }) => state !== "waiting");
  const none = text("Nothing waits. This page looks again every 15 seconds.");
  const body = [
    waiting.length === 0 ? none : waiting.map((view) => card(view, frame)).join(""),
    decided.length === 0
      ? ""
      : `<h2>Decided, and not called again yet</h2>${decided.map((view) => card(view, frame)).join("")}`,
  ].join("");
  const title = waiting.length === 0 ? "Calls to approve" : `Calls to approve: ${waiting.length}`;
  return page(200, title, { head: heading(frame), body, refresh: 15 });
}

/** The page of one call; `action` is where its form goes, and nothing where there is nothing to decide. */
export function approvalPage(
  view: ApprovalView,
  frame: ApprovalsFrame,
  action: string | undefined,
): HttpAnswer {
  const refusal = view.refusal ?? (view.state === "waiting" ? undefined : "decided");
  const buttons = `<form method="post" action="${toHtml(action ?? "")}"><input type="hidden" name="csrf" value="${toHtml(frame.csrf)}"><label>Why (may be left empty)<input name="comment" maxlength="500" autocomplete="off"></label><div class="actions"><button class="go" name="decision" value="approve">Approve once</button><button class="no" name="decision" value="deny">Deny</button></div></form>`;
  const body = [
    `<div class="card">${facts(view, frame.now)}</div>`,
    `<h2>Input</h2><div class="card">${inputOf(view.input)}</div>`,
    `<h2>What it says it does</h2>${saidBy(view)}`,
    refusal === undefined && action !== undefined ? buttons : text(REFUSED[refusal ?? "decided"]),
  ].join("");
  return page(200, `${view.operation}`, { head: heading(frame), body });
}

/** A page that says one thing. */
export function messagePage(
  status: number,
  title: string,
  { said, name }: { readonly said: string; readonly name: string },
): HttpAnswer {
  return page(status, title, { head: text(name, "span"), body: text(said) });
}

const REFUSED: Readonly<Record<ApprovalRefusal, string>> = {
  own: "This is your own call: somebody else has to decide.",
  rights: "You may not decide about this call.",
  place: "Calls of this operation are not decided about here.",
  decided: "This call has been decided about.",
};

function heading({ name, subject, csrf, up }: ApprovalsFrame): string {
  const list = `<a href="${up}approvals">${toHtml(name)}: calls to approve</a>`;
  if (subject === undefined) return list;
  return `${list}<form method="post" action="${up}approvals/sign-out"><input type="hidden" name="csrf" value="${toHtml(csrf)}">${toHtml(subject)} <button>Sign out</button></form>`;
}

function card(view: ApprovalView, { now, up }: ApprovalsFrame): string {
  const said = [
    `${personText(view.caller)} asks`,
    view.state === "waiting" ? `waits for ${duration(now - view.askedAt)}` : decisionText(view),
    `ends in ${duration(view.expiresAt - now)}`,
  ].join(" · ");
  const input = safeText(view.input).replace(/\s+/g, " ").slice(0, 160);
  return `<a class="card" href="${up}approvals/${view.id}"><b>${toHtml(view.operation)}</b> ${tag(view)}${input === "" ? "" : `<div class="mono">${toHtml(input)}</div>`}<p class="facts">${toHtml(said)}</p></a>`;
}

function facts(view: ApprovalView, now: number): string {
  const rows: (readonly [string, string])[] = [
    ["Caller", personText(view.caller)],
    ["Source", view.source ?? ""],
    [
      "Asked",
      `${new Date(view.askedAt).toISOString().slice(0, 19).replace("T", " ")} UTC, ${duration(now - view.askedAt)} ago`,
    ],
    ["Ends in", duration(view.expiresAt - now)],
    ["Decided", view.decision === undefined ? "" : decisionText(view)],
    ["Request", view.id.slice(0, 12)],
  ];
  const shown = rows.filter(([, value]) => value !== "");
  return `<dl>${shown.map(([name, value]) => `<dt>${name}</dt><dd>${toHtml(value)}</dd>`).join("")}</dl>`;
}

function inputOf(input: string): string {
  if (input === "") return text("None.");
  const value = parseJsonTextOrNone(input);
  if (!isPlainObject(value) || Object.keys(value).length === 0) return `<pre>${toHtml(input)}</pre>`;
  const rows = Object.entries(value).map(([name, member]) => {
    const shown = escapeHidden(JSON.stringify(member, undefined, 2));
    return `<dt>${toHtml(escapeHidden(name))}</dt><dd><pre>${toHtml(shown)}</pre></dd>`;
  });
  return `<dl>${rows.join("")}</dl>`;
}

function saidBy({ source, title, description, destructive }: ApprovalView): string {
  const says =
    destructive === undefined
      ? ""
      : destructive
        ? "It says that it destroys something."
        : "It says that it destroys nothing.";
  const parts = [title, description, says].filter((part) => part !== undefined && part !== "");
  const words = parts.length === 0 ? ["Nothing."] : parts;
  return `<div class="said"><small>The words of ${toHtml(source ?? "the operation")}, not checked by anybody</small>${words.map((one) => `<p>${toHtml(String(one))}</p>`).join("")}</div>`;
}

function tag({ destructive }: ApprovalView): string {
  return destructive === true ? '<span class="tag">destructive</span>' : "";
}

function personText({ subject, issuer, recognised }: ApprovalPerson): string {
  if (subject === undefined) return "an anonymous caller";
  const known =
    recognised === "token"
      ? "token of the config"
      : issuer === undefined
        ? recognised
        : `signed by ${issuer}`;
  return known === undefined ? subject : `${subject} (${known})`;
}

function decisionText({ state, decision }: ApprovalView): string {
  const by = decision?.by.subject;
  const comment = decision?.comment === undefined ? "" : `: ${decision.comment}`;
  return `${state}${by === undefined ? "" : ` by ${by}`}${comment}`;
}

function duration(ms: number): string {
  const seconds = Math.max(Math.round(ms / 1_000), 0);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.round(minutes / 60)} h`;
}

interface PageParts {
  /** HTML, as is the body. */
  readonly head: string;
  readonly body: string;
  /** Seconds after which it is asked for again. */
  readonly refresh?: number;
}

function page(status: number, title: string, { head, body, refresh }: PageParts): HttpAnswer {
  const shown = toHtml(title);
  const again = refresh === undefined ? "" : `<meta http-equiv="refresh" content="${refresh}">`;
  const html = `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">${again}<title>${shown} – Waybill</title><style>${STYLE}</style></head><body><header>${head}</header><main><h1>${shown}</h1>${body}</main></body></html>\n`;
  return { status, headers: { ...HEADERS }, body: html };
}

function text(said: string, element = "p"): string {
  return `<${element}>${toHtml(said)}</${element}>`;
}

function toHtml(given: string): string {
  return escapeHtml(safeText(given));
}
