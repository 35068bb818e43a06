import * as v from "valibot";
import { faultText } from "./faults.ts";
import { checkOf, fields, listOf, oneOf, parsedText, textMatching } from "./fields.ts";
import { parseHeaderName } from "./key.ts";
import { SecretName } from "./tiers.ts";

const JWT = faultText(
  'either { secret: "NAME", alg } or { jwks: "https://…", algs }, and header, issuer, audience',
);
const JWKS = faultText("an absolute https URL without credentials or fragment");
const HEADER = faultText("the name of a header");
const ALGS = ["RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "EdDSA"] as const;

/** The verification of the JSON Web Tokens whose claims are keys. Set either `secret` or `jwks`. */
export interface JwtInput {
  /**
   * The name of the Worker's secret with which the tokens are signed (HMAC). Write the name in capitals, instead of
   * the secret itself. Cannot be set together with `jwks`.
   *
   * @example "JWT_SECRET"
   */
  readonly secret?: string | undefined;
  /**
   * The algorithm of tokens that are signed with `secret`. Cannot be set together with `jwks`.
   *
   * @default "HS256"
   */
  readonly alg?: "HS256" | "HS384" | "HS512" | undefined;
  /**
   * The URL of the issuer's public keys, which are a JWK set (RFC 7517): an absolute https URL without credentials
   * and without a fragment. Cannot be set together with `secret`.
   *
   * @example "https://issuer.example.com/.well-known/jwks.json"
   */
  readonly jwks?: string | undefined;
  /**
   * The accepted algorithms of tokens that are verified with `jwks`. Cannot be set together with
   * `secret`.
   *
   * @default ["RS256"]
   */
  readonly algs?: readonly (typeof ALGS)[number][] | undefined;
  /**
   * The header that holds the token. In `authorization`, the token follows the word `Bearer`. In any other header,
   * the token is the whole value.
   *
   * @default "authorization"
   */
  readonly header?: string | undefined;
  /**
   * The required value of the claim `iss`; a text that is not empty.
   *
   * @default any value
   */
  readonly issuer?: string | undefined;
  /**
   * The required value of the claim `aud`, or of one of its elements; a text that is not empty.
   *
   * @default any value
   */
  readonly audience?: string | undefined;
}

const Text = textMatching(/./s, faultText("a text that is not empty"));

const JwtFields = fields(
  {
    secret: v.optional(SecretName),
    alg: v.optional(oneOf("HS256", "HS384", "HS512")),
    jwks: v.optional(parsedText(parseJwksUrl, JWKS)),
    // Symmetric algorithms are refused. Otherwise anyone could sign a token with the public key as the secret.
    algs: v.optional(
      listOf(
        oneOf(...ALGS),
        faultText(() => `a list of ${ALGS.join(", ")}`),
      ),
    ),
    header: v.optional(parsedText(parseHeaderName, HEADER), "authorization"),
    issuer: v.optional(Text),
    audience: v.optional(Text),
  },
  JWT,
);

function parseJwksUrl(text: string): string | undefined {
  const url = /^https:\/\/[^\s\\#]+$/i.test(text) ? URL.parse(text) : null;
  return url && !url.username && !url.password ? url.href : undefined;
}

export const JwtSchema = v.pipe(
  JwtFields,
  checkOf((token, refuse, hasFaults) => {
    const { secret, jwks } = token;
    const given = [secret, jwks].filter((each) => each !== undefined).length;
    // An unknown field is probably `secret` or `jwks` in another spelling.
    if (given === 0 && hasFaults) return;
    if (given !== 1)
      return refuse(
        given === 0 ? "missing" : "conflict",
        faultText(() => `set ${JWT}`),
      );
    if (secret === undefined && token.alg !== undefined) {
      refuse("conflict", faultText("with jwks, write algs, a list"), "alg");
    }
    if (jwks === undefined && token.algs !== undefined) {
      refuse("conflict", faultText("with secret, write alg, one algorithm"), "algs");
    }
  }),
  v.transform(({ secret, alg = "HS256", jwks, algs, ...rest }): JwtConfig => {
    // The check has made sure that either `secret` or `jwks` is set.
    return secret === undefined
      ? { ...rest, kind: "jwks", url: jwks as string, algs: algs ?? ["RS256"] }
      : { ...rest, kind: "secret", secret, alg };
  }),
);

/** {@link JwtInput}, parsed. */
export type JwtConfig = Readonly<
  Pick<v.InferOutput<typeof JwtFields>, "header" | "issuer" | "audience">
> &
  (
    | {
        readonly kind: "secret";
        readonly secret: string;
        readonly alg: "HS256" | "HS384" | "HS512";
      }
    | {
        readonly kind: "jwks";
        readonly url: string;
        readonly algs: readonly (typeof ALGS)[number][];
      }
  );
