/**
 * The messages after a change. The address of the next page has only the name of a message, so that no
 * link can show an operator a text of its author.
 */
const MESSAGES = {
  reset: "The client's counts and its ban are removed.",
  "ban-lifted": "The client's ban is lifted. Its counts are unchanged.",
  override: "The override is set. It holds everywhere within 15 seconds.",
  removed: "The override is removed. That holds everywhere within 15 seconds.",
  gone: "That override had ended already.",
} as const;

export type Flash = keyof typeof MESSAGES;

/** Returns the message with a name; undefined if there is no such message. */
export function flashText(name: string | undefined): string | undefined {
  return name !== undefined && Object.hasOwn(MESSAGES, name) ? MESSAGES[name as Flash] : undefined;
}

/** Returns the address of a page with a message. */
export function withFlash(path: string, flash: Flash): string {
  return `${path}${path.includes("?") ? "&" : "?"}done=${flash}`;
}
