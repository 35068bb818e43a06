import { type Override, overrideId } from "../../overrides/override.ts";
import type { DashboardContext } from "./context.ts";
import { effectText } from "./effect-text.ts";
import { Form, mayChange, ReasonField } from "./forms.tsx";
import { Time } from "./time.tsx";

interface OverrideProps {
  readonly c: DashboardContext;
  readonly override: Override;
  readonly now: number;
}

/** An override, and the form that removes it. */
export function OverrideCard({ c, override, now }: OverrideProps) {
  return (
    <div class="override-card">
      <p>
        <b>
          <bdi>{effectText(override)}</bdi>
        </b>
        , ends <Time at={override.expiresAt} now={now} />
      </p>
      <p class="reason">
        “<bdi>{override.reason}</bdi>” – <bdi>{override.by}</bdi>,{" "}
        <Time at={override.setAt} now={now} />
      </p>
      <RemoveForm c={c} override={override} />
    </div>
  );
}

/** The form that removes an override; nothing for read-only operators. */
export function RemoveForm({ c, override }: Omit<OverrideProps, "now">) {
  if (!mayChange(c)) return null;
  const { rule, client } = override;
  return (
    <details class="action">
      <summary>Remove</summary>
      <Form
        c={c}
        class="fields"
        action="/_weir/overrides/remove"
        hidden={{ id: overrideId(override), rule, client }}
      >
        <ReasonField />
        <button type="submit">Remove override</button>
      </Form>
    </details>
  );
}
