import { splitRoute } from "../../src/config/route.ts";
import type { Rule } from "../../src/config/rule.ts";

/** Words in a path that show that clients send credentials there. */
const CREDENTIAL_WORDS = new Set(
  "login logon signin auth authenticate oauth token password passwd passcode otp totp 2fa mfa passkey webauthn reset forgot".split(
    " ",
  ),
);

/**
 * Whether clients send credentials to the paths of an enforced rule. Requests that only read send
 * no credentials.
 */
export function isForCredentials({ match, mode }: Rule): boolean {
  const reads = match.methods?.every((method) => /^(GET|HEAD|OPTIONS)$/.test(method));
  if (mode !== "enforce" || reads) return false;
  const segments = (match.paths ?? []).flatMap(splitRoute);
  return segments.some((segment) => {
    const words = wordsOf(segment);
    return words.some((word, index) => {
      // This also finds sign-in and log-in, which are two words.
      return CREDENTIAL_WORDS.has(word) || CREDENTIAL_WORDS.has(`${word}${words[index + 1] ?? ""}`);
    });
  });
}

/** The words of a literal segment or of a parameter's pattern. A parameter's name is not part of any path. */
function wordsOf(segment: string): string[] {
  const text = segment.startsWith(":") ? (/\{(.+)\}/s.exec(segment)?.[1] ?? "") : segment;
  return (
    text
      // `[Ll]ogin` becomes `login`, and `\bauth\b` becomes `auth`.
      .replace(/\[(.)[^\]]*\]/g, "$1")
      .replace(/\\[a-z]/gi, " ")
      .toLowerCase()
      .split(/[^a-z0-9]+/)
      .filter(Boolean)
  );
}
