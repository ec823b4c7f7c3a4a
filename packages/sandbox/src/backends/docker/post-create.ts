import type Docker from 'dockerode'

import { SandboxError } from '../../errors.ts'
import { unless } from './answers.ts'
import type { CreateBody } from './create-template.ts'

/**
 * The new container's id; undefined when the name is taken. Not `createContainer`, which would put the whole body into
 * the URL as well.
 */
export async function postCreate(
  docker: Docker,
  name: string,
  body: CreateBody,
  abortSignal: AbortSignal,
): Promise<string | undefined> {
  const statusCodes = {
    201: true,
    400: 'bad parameter',
    404: 'no such image',
    409: 'conflict',
    500: 'server error',
  } as const
  const created = await unless(
    [409],
    new Promise<unknown>((resolve, reject) => {
      docker.modem.dial(
        {
          path: '/containers/create?',
          method: 'POST',
          options: { _query: { name }, _body: body },
          statusCodes,
          abortSignal,
        },
        (error, result) => (error ? reject(error) : resolve(result)),
      )
    }),
  )
  if (created === undefined) return undefined
  if (typeof created === 'object' && created !== null && 'Id' in created && typeof created.Id === 'string')
    return created.Id
  throw new SandboxError('engine_unavailable', 'The Docker engine answered a create without an id.')
}
