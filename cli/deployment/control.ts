import {
  ACCESS_TEAM,
  ADMIN_READ_TOKEN,
  ADMIN_TOKEN,
  CONTROL_BINDING,
} from "../../src/config/binding-names.ts";
import { nearestName } from "../../src/config/explain/nearest-name.ts";
import type { LocalFinding } from "../finding.ts";
import type { Deployment } from "./deployment.ts";
import { settingIn, valueIn } from "./notation.ts";
import { classFindings } from "./object-class.ts";
import { isSecretListed, textVarOf } from "./vars.ts";

const CLASS = "ControlObject";

/** With one of these, operators can read statistics. */
const CREDENTIALS = [ADMIN_TOKEN, ADMIN_READ_TOKEN, ACCESS_TEAM];

/** Findings about the Durable Object with the statistics and the overrides. It is optional. */
export function controlFindings(deployment: Deployment): LocalFinding[] {
  const { objects, file } = deployment;
  const binding = objects.find(({ name }) => name === CONTROL_BINDING);
  if (binding) return classFindings(binding, CLASS, deployment);
  const finding = {
    code: "control-unbound",
    severity: "warning",
    path: "durable_objects.bindings",
  } as const;
  const similar = objects.find(
    ({ name, className }) =>
      className === CLASS || nearestName(name, [CONTROL_BINDING]) !== undefined,
  );
  if (similar) {
    return [
      {
        ...finding,
        message: `${similar.name} looks like the binding of ${CLASS}, but Weir reads only ${CONTROL_BINDING}, so there are no statistics and no overrides`,
        cure: `Write ${settingIn(file, "name", CONTROL_BINDING)} in place of ${settingIn(file, "name", similar.name)}`,
      },
    ];
  }
  if (deployment.topLevelObjects.includes(CONTROL_BINDING)) {
    return [
      {
        ...finding,
        message: `${CONTROL_BINDING} is bound at the top level only, and environments do not inherit bindings, so this environment has no statistics and no overrides`,
        cure: `Add the binding to the environment too: ${valueIn(file, { name: CONTROL_BINDING, class_name: CLASS })}`,
      },
    ];
  }
  const credential = CREDENTIALS.find(
    (name) => isSecretListed(deployment, name) || textVarOf(deployment, name) !== undefined,
  );
  if (credential === undefined) return [];
  return [
    {
      ...finding,
      message: `${credential} is set, but no namespace is bound as ${CONTROL_BINDING}, so operators see no statistics and cannot set overrides`,
      cure: `Add ${valueIn(file, { name: CONTROL_BINDING, class_name: CLASS })} to durable_objects.bindings, add a migration with a new tag and ${settingIn(file, "new_sqlite_classes", [CLASS])}, and write export { ${CLASS} } from "edge-weir" in ${deployment.main.path ?? "the main module"}`,
    },
  ];
}
