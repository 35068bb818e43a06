import { type ExplainedResponse, shownText } from "../../explain/explanation.ts";
import { Table } from "./components.tsx";

/** What the client and the origin would get. */
export function ExplainedResponseCard({ response }: { response: ExplainedResponse }) {
  const { status, headers, body, originHeaders = [] } = response;
  return (
    <section class="card">
      <h2>The response</h2>
      {status === undefined ? (
        <p class="hint">The origin answers. Weir adds the fields below to its response.</p>
      ) : (
        <p class="hint">
          Weir answers with status <b>{status}</b>.
        </p>
      )}
      <Fields caption="Header fields that Weir sets" fields={headers} />
      {body !== undefined && (
        <section class="scroll" tabindex={0} aria-label="Body">
          <pre>
            <bdi>{body}</bdi>
          </pre>
        </section>
      )}
      {originHeaders.length > 0 && (
        <Fields caption="Header fields that the origin gets" fields={originHeaders} />
      )}
    </section>
  );
}

interface FieldsProps {
  readonly caption: string;
  readonly fields: ExplainedResponse["headers"];
}

function Fields({ caption, fields }: FieldsProps) {
  if (fields.length === 0) return <p class="none">{caption}: none.</p>;
  const columns = [{ label: "Field" }, { label: "Value" }];
  return (
    <Table caption={caption} showsCaption columns={columns}>
      {fields.map(([name, value]) => (
        <tr>
          <th scope="row">
            <code>
              <bdi>{name}</bdi>
            </code>
          </th>
          <td class="match">
            <bdi>{shownText(value)}</bdi>
          </td>
        </tr>
      ))}
    </Table>
  );
}
