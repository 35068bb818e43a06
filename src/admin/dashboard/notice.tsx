import type { Child } from "hono/jsx";
import { NO_CONTROL } from "../control-calls.ts";

interface NoticeProps {
  readonly kind: "good" | "info" | "warning" | "bad";
  readonly role?: "status" | "alert";
  readonly children?: Child;
}

const SIGNS = { good: "✓", info: "i", warning: "!", bad: "×" } as const;

/** A message above the content of a page. */
export function Notice({ kind, role, children }: NoticeProps) {
  return (
    <div class={`notice ${kind}`} role={role}>
      <span class="notice-sign" aria-hidden="true">
        {SIGNS[kind]}
      </span>
      <div>{children}</div>
    </div>
  );
}

/** Says why a part of a page is missing. */
export function Unavailable({ what, fault }: { what: string; fault: string }) {
  const isUnbound = fault === NO_CONTROL;
  return (
    <Notice kind="warning">
      <p>
        <b>{what} cannot be shown.</b> {fault}
      </p>
      {isUnbound && (
        <p>
          Export the class <code>ControlObject</code> from the Worker, bind it as{" "}
          <code>WEIR_CONTROL</code> in <code>wrangler.toml</code>, add a migration, and deploy. The
          page docs/guides/upgrading.md has the lines.
        </p>
      )}
    </Notice>
  );
}

/** What a page shows instead of an empty table. */
export function Empty({ title, children }: { title: string; children?: Child }) {
  return (
    <div class="empty card">
      <svg viewBox="0 0 96 40" aria-hidden="true">
        <path d="M4 12q11-12 22 0t22 0t22 0t22 0M4 24q11-12 22 0t22 0t22 0t22 0M4 36q11-12 22 0t22 0t22 0t22 0" />
      </svg>
      <h2>{title}</h2>
      {children}
    </div>
  );
}
