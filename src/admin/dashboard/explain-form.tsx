import type { DashboardContext } from "./context.ts";
import type { DescribedFields } from "./explain-input.ts";
import { Form } from "./forms.tsx";

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const;

/** The form that describes a request. */
export function DescriptionForm({ c, fields }: { c: DashboardContext; fields: DescribedFields }) {
  return (
    <section class="card">
      <h2>Describe a request</h2>
      <Form c={c} class="fields" action="/_weir/explain">
        <label class="field">
          <span>Method</span>
          <input
            name="method"
            value={fields.method}
            list="methods"
            maxlength={32}
            size={8}
            autocomplete="off"
            spellcheck={false}
          />
          <datalist id="methods">
            {METHODS.map((method) => (
              <option value={method} />
            ))}
          </datalist>
        </label>
        <label class="field wide">
          <span>URL or path</span>
          <input
            name="url"
            value={fields.url}
            required
            maxlength={16_384}
            autocomplete="off"
            spellcheck={false}
            placeholder="such as /search?q=tent"
          />
        </label>
        <ClientFields fields={fields} />
        <label class="field whole">
          <span>Header fields, one in each line</span>
          <textarea
            name="headers"
            rows={3}
            autocomplete="off"
            spellcheck={false}
            placeholder="x-api-key: abc"
          >
            {fields.headers}
          </textarea>
        </label>
        <button type="submit" class="primary">
          Explain
        </button>
      </Form>
      <p class="hint">
        The request is only decided, not sent and not counted. The functions in <code>custom</code>{" "}
        are called as for a real request.
      </p>
    </section>
  );
}

function ClientFields({ fields: { ip, country, asn } }: { fields: DescribedFields }) {
  return (
    <>
      <TextField name="ip" label="Client's address" value={ip} hint="203.0.113.7" size={20} />
      <TextField name="country" label="Country" value={country} hint="DE" size={6} />
      <TextField name="asn" label="ASN" value={asn} hint="13335" size={9} />
    </>
  );
}

interface TextFieldProps {
  readonly name: string;
  readonly label: string;
  readonly value: string;
  readonly hint: string;
  readonly size: number;
}

function TextField({ name, label, value, hint, size }: TextFieldProps) {
  return (
    <label class="field">
      <span>{label}</span>
      <input
        name={name}
        value={value}
        placeholder={hint}
        size={size}
        maxlength={64}
        autocomplete="off"
        spellcheck={false}
      />
    </label>
  );
}
