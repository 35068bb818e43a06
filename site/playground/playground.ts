import { autocompletion, closeBrackets } from "@codemirror/autocomplete";
import { javascript } from "@codemirror/lang-javascript";
import { syntaxHighlighting } from "@codemirror/language";
import { setDiagnostics } from "@codemirror/lint";
import { classHighlighter } from "@lezer/highlight";
import { EditorView, minimalSetup } from "codemirror";
import { type ChartData, chart } from "../../src/admin/dashboard/chart.ts";
import dashboardStyle from "../../src/admin/dashboard/client/style.css?raw";
import {
  badge,
  type Content,
  code,
  html,
  notice,
  STRIPES,
  table,
  trusted,
} from "../../src/admin/dashboard/components.ts";
import { formatCount } from "../../src/admin/format.ts";
import style from "./playground.css?raw";
import { completeRules, placed, readRules, type TextFault } from "./rules-text.ts";
import type { Decided, Result, Task, Traffic } from "./traffic.ts";

/** The playground is drawn by the dashboard's components, with the dashboard's style, which the site must not get. */
const CONTENT = html`<style>${trusted(dashboardStyle.replaceAll(/^(:root|body) \{/gm, ":host {"))}
${trusted(style)}</style>${STRIPES}
<p class="note">Change the rules, and choose the traffic. Your browser decides the requests, and sends nothing.</p>
<div id="panes"><div class="card" id="rules"></div>
<form class="row">
<label class="field"><span>Traffic</span><select name="kind">
<option value="burst">a burst</option><option value="steady">a steady client</option>
<option value="two">two clients</option><option value="log">a log of your own</option></select></label>
<label class="field wide" data-of="burst steady two"><span>Request</span><input name="request" value="POST /login" spellcheck="false"></label>
<label class="field" data-of="burst steady two"><span>Status of the origin</span><input name="status" type="number" min="200" max="599" value="200"></label>
<label class="field whole" data-of="burst steady two"><span>Requests per minute: <output>8</output></span><input name="perMinute" type="range" min="1" max="120" value="8"></label>
<label class="field whole" data-of="log"><span>Lines of Apache, nginx or JSON, such as Cloudflare Logpush. Paste them, or drop a file.</span><textarea name="log" rows="6" spellcheck="false"></textarea></label>
</form>
<div id="result"></div></div>`;

/** Shows the playground in an element, whose text is the first text of the editor. No request leaves the browser. */
export function mountPlayground(host: HTMLElement): void {
  const doc = host.querySelector("code")?.textContent ?? "";
  const root = host.attachShadow({ mode: "open" });
  root.innerHTML = String(CONTENT);
  const form = root.querySelector("form") as HTMLFormElement;
  const result = root.querySelector("#result") as HTMLElement;
  const worker = new Worker(new URL("./decide.worker.ts", import.meta.url), { type: "module" });
  let rules = readRules(doc);
  let id = 0;
  const show = (content: Content) => {
    result.innerHTML = String(html`${content}`);
  };
  const showFaults = (faults: readonly TextFault[]) => {
    const diagnostics = faults.map((fault) => ({ ...fault, severity: "error" as const }));
    editor.dispatch(setDiagnostics(editor.state, diagnostics));
    const lines = faults.map(
      ({ path, message }) => html`<li>${path && code(path)} ${message}</li>`,
    );
    if (lines.length > 0) show(notice("bad", html`<ul>${lines}</ul>`, "alert"));
  };
  const update = () => {
    const traffic = trafficIn(form);
    rules = readRules(editor.state.doc.toString());
    // The result of an earlier task is out of date.
    id += 1;
    if (rules.faults.length > 0) showFaults(rules.faults);
    else worker.postMessage({ id, input: rules.value, traffic } satisfies Task);
  };
  worker.onmessage = ({ data }: MessageEvent<Result>) => {
    if (data.id !== id) return;
    showFaults((data.faults ?? []).map((fault) => placed(rules, fault)));
    if (data.decided) show(report(data.decided, data.unread ?? 0));
  };
  const editor = new EditorView({
    doc,
    parent: root.querySelector("#rules") as HTMLElement,
    root,
    extensions: [
      minimalSetup,
      javascript({ typescript: true }),
      syntaxHighlighting(classHighlighter),
      autocompletion({ override: [completeRules] }),
      closeBrackets(),
      EditorView.lineWrapping,
      EditorView.contentAttributes.of({ "aria-label": "Rules" }),
      EditorView.updateListener.of(({ docChanged }) => docChanged && update()),
    ],
  });
  form.addEventListener("input", update);
  form.addEventListener("submit", (event) => event.preventDefault());
  takeDroppedFiles(form, update);
  update();
}

/** Reads the form, and shows the fields that the chosen kind of traffic has. */
function trafficIn(form: HTMLFormElement): Traffic {
  const fields = new FormData(form);
  const text = (name: string) => String(fields.get(name));
  const kind = text("kind") as Traffic["kind"];
  for (const label of form.querySelectorAll<HTMLElement>("[data-of]")) {
    label.hidden = !label.dataset.of?.split(" ").includes(kind);
  }
  const perMinute = Number(text("perMinute"));
  (form.querySelector("output") as HTMLOutputElement).value = String(perMinute);
  return {
    kind,
    request: text("request"),
    status: Number(text("status")),
    perMinute,
    log: text("log"),
  };
}

function takeDroppedFiles(form: HTMLFormElement, onTaken: () => void): void {
  form.addEventListener("dragover", (event) => event.preventDefault());
  form.addEventListener("drop", async (event) => {
    const [file] = event.dataTransfer?.files ?? [];
    if (!file) return;
    event.preventDefault();
    (form.elements.namedItem("kind") as HTMLSelectElement).value = "log";
    (form.elements.namedItem("log") as HTMLTextAreaElement).value = await file.text();
    onTaken();
  });
}

/** The maximum number of rows of the table. */
const MAX_ROWS = 200;

function report(decided: readonly Decided[], unread: number): Content {
  const denied = decided.filter(({ passed }) => !passed).length;
  const summary = `${formatCount(decided.length)} requests: ${formatCount(decided.length - denied)} passed, ${formatCount(denied)} denied.`;
  const rows = decided.slice(0, MAX_ROWS);
  const isCut = rows.length < decided.length;
  return html`<p role="status"><strong>${summary}</strong>${
    unread > 0 &&
    ` ${formatCount(unread)} ${unread === 1 ? "line is no request" : "lines are no requests"}.`
  }${decided.length > 0 && decided.every(({ policy }) => policy === "") && " No enforced rule counts them."}</p>
${
  decided.length > 0 &&
  html`${chart({ title: "Requests", data: chartData(decided) })}<figure class="card">${table({
    caption: isCut ? `The first ${MAX_ROWS} requests` : "Each request",
    showsCaption: true,
    cards: true,
    columns: [
      { label: "Time (UTC)", cell: ({ at }) => timeText(at) },
      { label: "Client", cell: ({ client }) => client },
      { label: "Request", class: "any", cell: ({ request }) => code(request) },
      {
        label: "Status",
        cell: ({ passed, status }) => badge(passed ? "" : "limited", `${status}`),
      },
      { label: "RateLimit-Policy", class: "any", cell: ({ policy }) => policy && code(policy) },
      { label: "RateLimit", class: "any", cell: ({ limit }) => limit && code(limit) },
      { label: "Retry-After", cell: ({ retryAfter }) => retryAfter },
    ],
    rows,
  })}</figure>`
}`;
}

function timeText(at: number): string {
  return new Date(at).toISOString().slice(11, 23);
}

const MAX_BUCKETS = 60;

function chartData(decided: readonly Decided[]): ChartData {
  const start = decided[0]?.at ?? 0;
  const buckets = Math.min(MAX_BUCKETS, decided.length);
  const step = Math.max(1, (decided.at(-1)?.at ?? 0) - start) / Math.max(1, buckets - 1);
  const passed = new Array<number>(buckets).fill(0);
  const denied = [...passed];
  for (const each of decided) {
    const counts = each.passed ? passed : denied;
    const index = Math.round((each.at - start) / step);
    counts[index] = (counts[index] ?? 0) + 1;
  }
  return {
    start,
    step,
    unit: "count",
    stacked: true,
    bars: true,
    series: [
      { label: "passed", tone: "allowed", values: passed },
      { label: "denied", tone: "limited", values: denied },
    ],
    unfinished: false,
  };
}
