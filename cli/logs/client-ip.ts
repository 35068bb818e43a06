import { parseAddress } from "../../src/config/address.ts";

/** An IPv4 address with a port, or an IPv6 address in brackets, with or without a port. */
const WITH_PORT = /^(?:([\d.]{7,15}):\d{1,5}|\[([\da-f:.]{2,45})\](?::\d{1,5})?)$/i;

/** An IPv4 address that is embedded in an IPv6 address, as dual-stack servers log it. */
const MAPPED = /^::ffff:([\da-f]{1,4}):([\da-f]{1,4})$/;

/**
 * Returns the canonical notation of a client's address. Accepts a port after it. An IPv4 address that is mapped
 * into IPv6 is returned as IPv4.
 *
 * @returns undefined for anything else, such as a host name
 */
export function clientIp(text: string): string | undefined {
  const [, ipv4, ipv6] = WITH_PORT.exec(text) ?? [];
  const canonical = parseAddress(ipv4 ?? ipv6 ?? text)?.toString();
  if (canonical === undefined) return undefined;
  const [, high, low] = MAPPED.exec(canonical) ?? [];
  if (high === undefined || low === undefined) return canonical;
  const bits = [Number.parseInt(high, 16), Number.parseInt(low, 16)];
  return bits.flatMap((pair) => [pair >> 8, pair & 0xff]).join(".");
}

/** Whether a part of a line is an IPv4 address in its canonical notation. */
export function isIPv4At(line: string, from: number, to: number): boolean {
  let dots = 0;
  let byte = -1;
  for (let index = from; index < to; index++) {
    const code = line.charCodeAt(index);
    if (code >= 48 && code <= 57) {
      // A leading zero would mean octal to some programs.
      if (byte === 0) return false;
      byte = (byte === -1 ? 0 : byte * 10) + code - 48;
      if (byte > 255) return false;
    } else if (code === 46 && byte !== -1) {
      dots++;
      byte = -1;
    } else return false;
  }
  return dots === 3 && byte !== -1;
}
