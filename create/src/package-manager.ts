import { spawn } from "node:child_process";
import { once } from "node:events";

export const PACKAGE_MANAGERS = ["npm", "pnpm", "yarn", "bun"] as const;
export type PackageManager = (typeof PACKAGE_MANAGERS)[number];

/**
 * Returns the package manager that runs this process.
 *
 * @param userAgent the variable npm_config_user_agent, which all package managers set; such as
 * `pnpm/10.2.0 npm/? node/v24.1.0 linux x64`
 * @returns npm if the text names none
 */
export function runningPackageManager(userAgent = ""): PackageManager {
  const name = userAgent.split("/")[0];
  return PACKAGE_MANAGERS.find((each) => each === name) ?? "npm";
}

/**
 * Installs a project's packages. The output goes to the output of this process.
 *
 * @returns whether the package manager succeeded
 */
export async function installPackages(manager: PackageManager, folder: string): Promise<boolean> {
  // Without a shell, Windows does not find npm.cmd. The arguments are constants.
  const options = { cwd: folder, stdio: "inherit", shell: process.platform === "win32" } as const;
  try {
    const [code] = await once(spawn(manager, ["install"], options), "exit");
    return code === 0;
  } catch {
    // The package manager is not installed.
    return false;
  }
}
