import { GOLD } from "../rules.ts";
import { head, type Vector, type VectorClass } from "../vector.ts";

function tier(name: string, fields: string[], quota?: number): Vector {
  return {
    name: `tier: ${name}`,
    lines: head("/tier", ...fields),
    counted: { tier: "client" },
    ...(quota && { quotas: { tier: quota } }),
  };
}

function exempt(name: string, counted: boolean, ...fields: string[]): Vector {
  return {
    name: `exempt: ${name}`,
    lines: head("/secret", ...fields),
    counted: counted ? { secret: "client" } : {},
  };
}

export const choices: VectorClass = {
  about: "Tiers and exemptions: properties that every object has, secrets with small differences",
  vectors: [
    tier("none", []),
    tier("gold", ["X-Plan: gold"], GOLD),
    ...["Gold", "__proto__", "constructor", "toString", "size", "get", "gold, gold", ""].map(
      (name) => tier(JSON.stringify(name), [`X-Plan: ${name}`]),
    ),
    tier("two fields", ["X-Plan: gold", "X-Plan: gold"]),
    exempt("nothing", true),
    exempt("the secret", false, "X-Internal: let-me-pass"),
    exempt("a part of the secret", true, "X-Internal: let-me"),
    exempt("the secret and one more letter", true, "X-Internal: let-me-passx"),
    exempt("the secret in capitals", true, "X-Internal: LET-ME-PASS"),
    exempt("an empty field", true, "X-Internal:"),
    exempt("the secret twice", true, "X-Internal: let-me-pass", "X-Internal: let-me-pass"),
    exempt("a guess and the secret", true, "X-Internal: guess, let-me-pass"),
    exempt("the secret's name", true, "X-Internal: INTERNAL"),
    exempt("the secret in another field", true, "Internal: let-me-pass"),
    {
      name: "exempt: a forged address",
      lines: head("/ip", "X-Forwarded-For: 198.51.100.1"),
      counted: { ip: "v4", exempt: "v4" },
    },
    {
      name: "exempt: an address exempt from one rule",
      lines: [
        "GET /ip HTTP/1.1",
        "Host: x",
        "CF-Connecting-IP: ::ffff:198.51.100.9",
        "Connection: close",
      ],
      counted: { ip: "exempt" },
    },
  ],
};
