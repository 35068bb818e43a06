/** Labels, or an IPv6 address in brackets; then a port. */
const HOST = /^([\w.-]{1,253}|\[[\da-f:.]{2,45}\])(?::\d{1,5})?$/i;

/**
 * Returns a host name in lower case, without its port.
 *
 * @returns undefined if the text is no host name
 */
export function hostName(text: string): string | undefined {
  return HOST.exec(text)?.[1]?.toLowerCase();
}
