/** Any custom query: composed as a sentence or written as JSON, kept in the URL. */

import { amend, navigate, page, session, timezone } from "../../app_state.js";
import { ApiError } from "../../api/client.js";
import { custom, customCsv, customSql } from "../../api/queries.js";
import { useDraft } from "../../controls/draft.js";
import { useLoad } from "../../controls/load.js";
import { explain, Failure, Skeleton } from "../../controls/messages.js";
import { OptionList } from "../../controls/option_list.js";
import { Popover } from "../../controls/popover.js";
import { useSchema } from "../../controls/schema.js";
import { html } from "../../html.js";
import { parseJson } from "../../state/json.js";
import { firstBody, parseBody } from "../../state/query_body.js";
import { corrected, locate } from "../../state/refusals.js";
import { useEffect, useState } from "../../vendor/hooks.js";
import { AnswerView } from "./answer.js";
import { Sentence } from "./sentence.js";

/** @typedef {import("../../api/queries.js").CustomBody} CustomBody */

export function Explore() {
  const { query, website: id, metric } = page.value;
  const text = query || JSON.stringify(firstBody(timezone.value));
  const { body } = parseBody(text);
  const [isJson, setJson] = useDraft("json opened", () => false);
  const [saved, setSaved] = useState(/** @type {{of: string, token: import("../../api/saved.js").SavedToken, Note: any} | null} */ (null));
  const known = useSchema();
  const { value, error, isLoading, reload } = useLoad(body ? `explore ${id} ${text}` : "", (signal) => answered(id, /** @type {CustomBody} */ (body), signal));
  const onChange = (/** @type {CustomBody} */ changed) => navigate({ query: JSON.stringify(changed) });
  useEffect(() => {
    if (!query) amend({ query: text });
  }, [query]);
  const refusal = body && error instanceof ApiError && error.status === 400 ? locate(error, body) : null;
  return html`
    <section class="card query">
      ${known.error != null && html`<${Failure} error=${known.error} onRetry=${known.reload} />`}
      ${body && known.value ? html`<${Sentence} body=${body} schema=${known.value} refusal=${refusal} onChange=${onChange} />` : body ? html`<${Skeleton} lines=${2} />` : null}
      ${refusal?.path.length === 0 && html`<p class="refusal note" role="alert">${refusal.message} ${refusal.suggestion && body && html`<button type="button" class="primary" onClick=${() => onChange(corrected(body, refusal))}>Use <bdi>${refusal.suggestion}</bdi></button>`}</p>`}
      ${(isJson || !body) && html`<${JsonEditor} key=${text} text=${text} onChange=${(/** @type {string} */ written) => navigate({ query: written })} />`}
      <footer class="actions">
        ${body && html`<button type="button" class="quiet" onClick=${() => setJson(!isJson)}>${isJson ? "Hide JSON" : "JSON"}</button>`}
        <${SavedQueries} website=${id} body=${body} onOpen=${onChange} onSaved=${(/** @type {import("../../api/saved.js").SavedToken} */ token, /** @type {any} */ Note) => setSaved({ of: id, token, Note })} />
        ${body && html`<${CopyAs} body=${body} website=${id} />`}
        ${body && html`<${DownloadCsv} body=${body} website=${id} />`}
        ${body && html`<button type="button" class="quiet" onClick=${reload}>Run again</button>`}
        <button type="button" class="quiet" onClick=${() => navigate({ query: JSON.stringify(firstBody(timezone.value)), metric: "" })}>Start over</button>
      </footer>
      ${saved?.of === id && html`<${saved.Note} saved=${saved.token} onClose=${() => setSaved(null)} />`}
    </section>
    ${error != null && !refusal && html`<${Failure} error=${error} onRetry=${reload} />`}
    <div class=${value && (isLoading || error != null) ? "stale" : ""} aria-busy=${isLoading}>
      ${body && value ? html`<${AnswerView} ...${value} view=${metric} onOrder=${(/** @type {any} */ order) => onChange({ ...body, orderBy: [order] })} onView=${(/** @type {string} */ view) => amend({ metric: view })} />` : isLoading && error == null ? html`<section class="card answer"><${Skeleton} lines=${8} /></section>` : null}
    </div>`;
}

/** An answer and its query, with which it is shown until the next one is there. @param {string} id @param {CustomBody} body @param {AbortSignal} signal */
async function answered(id, body, signal) {
  return { body, answer: await custom(id, body, signal) };
}

/** The list of saved queries, which is loaded when it is opened. @param {import("./saved.js").PanelProps} props */
function SavedQueries(props) {
  if (!session.value?.scopes.includes("manage:data")) return null;
  const then = (/** @type {() => void} */ close, /** @type {any} */ act) => (/** @type {any[]} */ ...given) => (close(), act(...given));
  return html`<${Popover} title="Saved queries" draft="saved queries" className="quiet" label="Saved queries">${(/** @type {() => void} */ close) => html`<${LatePanel} ...${props} onOpen=${then(close, props.onOpen)} onSaved=${then(close, props.onSaved)} />`}<//>`;
}

/** @param {import("./saved.js").PanelProps} props */
function LatePanel(props) {
  const { value: Panel, error, reload } = useLoad("view of saved queries", async () => (await import("./saved.js")).Panel);
  if (error != null) return html`<${Failure} error=${error} onRetry=${reload} />`;
  return Panel ? html`<${Panel} ...${props} />` : html`<${Skeleton} lines=${3} />`;
}

/** @param {{text: string, onChange: (text: string) => void}} props */
function JsonEditor({ text, onChange }) {
  const [written, setWritten] = useDraft(`json ${text}`, () => pretty(text));
  const { problem } = parseBody(written);
  return html`<form class="json" onSubmit=${(/** @type {Event} */ event) => (event.preventDefault(), !problem && onChange(JSON.stringify(parseJson(written))))}>
    <textarea class="mono" aria-label="Query as JSON" spellcheck=${false} rows=${Math.min(28, written.split("\n").length + 1)} value=${written} onInput=${(/** @type {any} */ event) => setWritten(event.target.value)}></textarea>
    <p class="actions"><button type="submit" class="primary" disabled=${Boolean(problem) || written === pretty(text)}>Run</button><span class="refusal" role="alert">${problem}</span></p></form>`;
}

/** @param {string} text */
function pretty(text) {
  try {
    return JSON.stringify(parseJson(text), null, 2);
  } catch {
    return text;
  }
}

/** The names of the forms in which a query is copied. */
const FORMS = { curl: "curl", command: "headrace query", python: "Python", json: "JSON", sql: "SQL" };

/** @param {{body: CustomBody, website: string}} props */
function CopyAs({ body, website }) {
  const [copied, setCopied] = useState("");
  const [isWaiting, setWaiting] = useState(false);
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const copy = async (/** @type {keyof FORMS} */ form) => {
    setError(null);
    if (!navigator.clipboard) throw new ApiError("Not copied: browsers allow it on HTTPS pages alone", { status: 0, code: "NO_CLIPBOARD" });
    setWaiting(true);
    const text = form === "sql" ? await customSql(website, body) : (await import("../../state/copy_as.js")).COPIES[form]?.({ origin: location.origin, website, body });
    await navigator.clipboard.writeText(text ?? "");
    setCopied(FORMS[form]);
    setTimeout(() => setCopied(""), 2000);
  };
  return html`<${Popover} title="Copy as" className="quiet" label=${isWaiting ? "Copying …" : copied ? `${copied} copied` : "Copy as"}>
    ${(/** @type {() => void} */ close) => html`<${OptionList} label="Copy as" options=${Object.entries(FORMS).map(([value, label]) => ({ value, label }))}
      onChoose=${(/** @type {keyof FORMS} */ form) => (close(), copy(form).catch(setError).finally(() => setWaiting(false)))} />`}<//>${error != null && html`<span class="refusal" role="alert">${explain(error).title}</span>`}`;
}

/** The rows as the service writes them in CSV. @param {{body: CustomBody, website: string}} props */
function DownloadCsv({ body, website }) {
  const [isWaiting, setWaiting] = useState(false);
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const download = async () => {
    if (isWaiting) return;
    setError(null);
    setWaiting(true);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await customCsv(website, body));
    link.download = `${body.query.table}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  return html`<button type="button" class="quiet" onClick=${() => download().catch(setError).finally(() => setWaiting(false))}>${isWaiting ? "CSV …" : "CSV"}</button>${error != null && html`<span class="refusal" role="alert">${explain(error).title}</span>`}`;
}
