import { type ExplainedRequest, shownText } from "../../explain/explanation.ts";

/** The maximum number of readings of a path that are listed. */
const MAX_READINGS = 20;

/** The form of a request that rules match. */
export function ExplainedRequestCard({ request }: { request: ExplainedRequest }) {
  const { method, sentMethod, isPreflight, host, path, variants, isUnambiguous, client } = request;
  const others = variants.filter((variant) => variant !== path);
  return (
    <section class="card">
      <h2>The request that rules match</h2>
      <dl class="facts">
        <Fact term="Method">
          {method}
          {sentMethod !== method && ` (sent as ${sentMethod})`}
          {isPreflight && <span class="badge">CORS preflight</span>}
        </Fact>
        <Fact term="Host">{host}</Fact>
        <Fact term="Path">{shownText(path)}</Fact>
        <Fact term="Client's address">{client}</Fact>
      </dl>
      {!isUnambiguous && (
        <p class="hint">
          Origins may read this path in different ways. Rules match each of them, and exceptions
          none.
        </p>
      )}
      {others.length > 0 && (
        <details>
          <summary>Other readings of the path</summary>
          <ul class="plain">
            {others.slice(0, MAX_READINGS).map((variant) => (
              <li>
                <code>
                  <bdi>{shownText(variant)}</bdi>
                </code>
              </li>
            ))}
          </ul>
          {others.length > MAX_READINGS && <p class="hint">And more.</p>}
        </details>
      )}
    </section>
  );
}

function Fact({ term, children }: { term: string; children?: unknown }) {
  return (
    <div>
      <dt>{term}</dt>
      <dd>
        <bdi>{children}</bdi>
      </dd>
    </div>
  );
}
