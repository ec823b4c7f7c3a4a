/** Settings of the engine tests. */
export const testConfig = {
  image: process.env.SANDLOT_SANDBOX_IMAGE ?? 'sandlot/sandbox:latest',
  dockerHost: process.env.DOCKER_HOST,
}
