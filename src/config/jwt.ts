import * as v from "valibot";
import { SecretName } from "./exempt.ts";
import { fields, listOf, oneOf, parsed } from "./fields.ts";
import { parseHeaderName } from "./key-expression.ts";
import { pathTo } from "./quota.ts";

const JWT =
  'either { secret: "NAME", alg } or { jwks: "https://…", algs }, and header, issuer, audience';
const JWKS = "an absolute https URL without credentials or fragment";
const HEADER = "the name of a header";
const ALGS = ["RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "EdDSA"] as const;

const Text = v.pipe(v.string("a text"), v.minLength(1, "a text that is not empty"));

const JwtFields = fields(
  {
    secret: v.optional(SecretName),
    alg: v.optional(oneOf("HS256", "HS384", "HS512")),
    jwks: v.optional(parsed(parseJwksUrl, JWKS)),
    // Never a symmetric one: with it, anybody could sign with the public key as the secret.
    algs: v.optional(listOf(oneOf(...ALGS), `a list of ${ALGS.join(", ")}`)),
    header: v.optional(parsed(parseHeaderName, HEADER), "authorization"),
    issuer: v.optional(Text),
    audience: v.optional(Text),
  },
  JWT,
);

function parseJwksUrl(text: string): string | undefined {
  const url = /^https:\/\/[^\s\\#]+$/i.test(text) ? URL.parse(text) : null;
  return url && !url.username && !url.password ? url.href : undefined;
}

/** `alg` beside `jwks`, or `algs` beside `secret`, would be passed over in silence. */
const oneSource = v.rawCheck<v.InferOutput<typeof JwtFields>>(({ dataset, addIssue }) => {
  if (!dataset.typed) return;
  const { value } = dataset;
  if ((value.secret === undefined) === (value.jwks === undefined)) {
    addIssue({ message: JWT });
    return;
  }
  const stray = value.secret === undefined ? "alg" : "algs";
  if (value[stray] === undefined) return;
  addIssue({ path: [pathTo(value, stray)], input: value[stray], message: JWT });
});

/** How tokens are verified whose claims are keys. */
export const JwtSchema = v.pipe(
  JwtFields,
  oneSource,
  v.transform(({ secret, alg = "HS256", jwks, algs, ...rest }): JwtConfig => {
    // `oneSource` has seen to it that one of the two is there.
    return secret === undefined
      ? { ...rest, kind: "jwks", url: jwks as string, algs: algs ?? ["RS256"] }
      : { ...rest, kind: "secret", secret, alg };
  }),
);

interface Claimed {
  /** The header that a token comes in, in lower case. In `authorization` it follows `Bearer`. */
  readonly header: string;
  /** What the claims `iss` and `aud` must hold; any when undefined. */
  readonly issuer?: string | undefined;
  readonly audience?: string | undefined;
}

export type JwtConfig = Claimed &
  (
    | {
        readonly kind: "secret";
        /** What the Worker's secret is called. */
        readonly secret: string;
        readonly alg: "HS256" | "HS384" | "HS512";
      }
    | {
        readonly kind: "jwks";
        readonly url: string;
        readonly algs: readonly (typeof ALGS)[number][];
      }
  );
