const [ZERO, NINE, DOT] = [48, 57, 46];

/** Whether a text is an IPv4 address in its only canonical form, such as `203.0.113.7`. */
export function isPlainIPv4(text: string): boolean {
  let [parts, digits, value] = [1, 0, 0];
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === DOT) {
      if (digits === 0 || parts === 4) return false;
      parts++;
      [digits, value] = [0, 0];
    } else {
      const hasLeadingZero = digits > 0 && value === 0;
      if (code < ZERO || code > NINE || hasLeadingZero) return false;
      value = value * 10 + code - ZERO;
      digits++;
      if (value > 255) return false;
    }
  }
  return parts === 4 && digits > 0;
}
