import type { Child } from "hono/jsx";

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
  const isUnbound = fault.includes("WEIR_CONTROL");
  return (
    <Notice kind="warning">
      <p>
        <b>{what} cannot be shown.</b> {fault}
      </p>
      {isUnbound && (
        <p>
          Bind the class <code>ControlObject</code> as <code>WEIR_CONTROL</code> in{" "}
          <code>wrangler.toml</code>, export it from the Worker, and deploy. The page docs/admin.md
          describes each step.
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
