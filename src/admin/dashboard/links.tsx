/** Returns the address of the page of a rule. */
export function rulePath(rule: string): string {
  return `/_weir/rules/${encodeURIComponent(rule)}`;
}

/** Returns the address of the page of a client. An identity is a hash, so it may be in an address. */
export function clientPath(client: string, rule?: string): string {
  const query = new URLSearchParams(rule === undefined ? { client } : { client, rule });
  return `/_weir/clients?${query}`;
}

export function RuleLink({ rule }: { rule: string }) {
  return (
    <a href={rulePath(rule)}>
      <bdi>{rule}</bdi>
    </a>
  );
}

export function ClientLink({ client, rule }: { client: string; rule?: string | undefined }) {
  return (
    <a href={clientPath(client, rule)} class="client">
      <bdi>{client}</bdi>
    </a>
  );
}
