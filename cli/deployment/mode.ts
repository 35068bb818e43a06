import { MODE_VAR } from "../../src/config/binding-names.ts";
import { readDeploymentMode } from "../../src/config/deployment-mode.ts";
import type { LocalFinding } from "../finding.ts";
import type { Deployment } from "./deployment.ts";
import { settingIn } from "./notation.ts";

/** Findings about the var that sets the mode of all rules of a deployment. */
export function modeFindings({ file, vars }: Deployment): LocalFinding[] {
  const mode = readDeploymentMode(vars);
  if (mode === "enforce") return [];
  const path = `vars.${MODE_VAR}`;
  const cure = `Remove ${MODE_VAR} from vars, unless this environment must not deny requests`;
  if (mode === undefined) {
    return [
      {
        code: "mode-invalid",
        severity: "fault",
        path,
        message: `${MODE_VAR} is not "enforce", "shadow" or "off", so the rules are enforced`,
        cure: `Write ${settingIn(file, MODE_VAR, "shadow")} or ${settingIn(file, MODE_VAR, "off")}, or remove the var`,
      },
    ];
  }
  const effect =
    mode === "off" ? "no rule applies" : "every rule is in shadow mode, so no request is denied";
  return [
    {
      code: "rules-not-enforced",
      severity: "warning",
      path,
      message: `${MODE_VAR} is "${mode}" here: ${effect}`,
      cure,
    },
  ];
}
