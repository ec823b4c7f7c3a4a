/** A person's sandbox, over HTTP. */
import {
  type BackgroundJob,
  type SandboxView,
  backgroundJobs,
  jobOutput,
  sandboxView,
} from '@sandlot/shared/workspace/sandbox'
import { z } from 'zod'
import { call } from './http.ts'

export function fetchSandbox(): Promise<SandboxView> {
  return call(sandboxView, 'GET', '/api/sandbox')
}

/** Every process ends; the workspace stays. */
export async function resetSandbox(): Promise<void> {
  await call(z.unknown(), 'POST', '/api/sandbox/reset', {})
}

/** The same, and it is started again by the next command. */
export async function stopSandbox(): Promise<void> {
  await call(z.unknown(), 'POST', '/api/sandbox/stop', {})
}

/** Oldest first. */
export async function fetchJobs(): Promise<BackgroundJob[]> {
  return (await call(backgroundJobs, 'GET', '/api/sandbox/jobs')).jobs
}

/** The last of what it has printed. */
export async function fetchJobOutput(id: string): Promise<string> {
  return (await call(jobOutput, 'GET', `/api/sandbox/jobs/${id}/output`)).text
}

export async function endJob(id: string): Promise<void> {
  await call(z.unknown(), 'DELETE', `/api/sandbox/jobs/${id}`)
}
