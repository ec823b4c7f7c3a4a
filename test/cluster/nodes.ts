/** Configuration files of a node, and objects that a cluster begins with. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CONTROL, type Facts, NODES, type NodeNumber, SOCKET } from './parts.ts'

const VOLUMES_PER_NODE = 40

export function writeNodeFiles({ id, folder, tool }: Facts, node: NodeNumber): void {
  const home = join(folder, `node${node}`)
  mkdirSync(join(home, 'cni'), { recursive: true })
  const write = (name: string, content: object): void =>
    writeFileSync(join(home, name), JSON.stringify(content))
  write('cni/10-bridge.conflist', {
    cniVersion: '1.0.0',
    name: 'bridge',
    plugins: [
      {
        type: 'bridge',
        bridge: 'cni0',
        isGateway: true,
        hairpinMode: true,
        ipam: {
          type: 'host-local',
          ranges: [[{ subnet: `10.88.${node}.0/24` }]],
          routes: [{ dst: '0.0.0.0/0' }],
        },
      },
    ],
  })
  // Without CAP_SYS_RESOURCE runc cannot lower the OOM score of a Pod, and fails with words about a pipe.
  writeFileSync(
    join(home, 'containerd.toml'),
    `version = 2
root = "${join(home, 'root')}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:test"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "${join(home, 'cni')}"
`,
  )
  write('kubelet.json', {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: join(tool, 'pki/ca.crt') },
    },
    authorization: { mode: 'Webhook' },
    tlsCertFile: join(tool, `pki/kubelet${node}.crt`),
    tlsPrivateKeyFile: join(tool, `pki/kubelet${node}.key`),
    rotateCertificates: false,
    containerRuntimeEndpoint: `unix://${SOCKET}`,
    failCgroupV1: false,
    cgroupDriver: 'cgroupfs',
    cgroupRoot: `/${id}/node${node}`,
    enforceNodeAllocatable: [],
    failSwapOn: false,
    podPidsLimit: 600,
    makeIPTablesUtilChains: false,
    // The disk of the machine is none of the cluster's business.
    evictionHard: { 'memory.available': '100Mi', 'nodefs.available': '1%', 'imagefs.available': '1%' },
    imageGCHighThresholdPercent: 100,
    imageGCLowThresholdPercent: 99,
    resolvConf: '',
    clusterDNS: [CONTROL],
    clusterDomain: 'cluster.local',
    volumePluginDir: join(home, 'plugins'),
    podLogsDir: join(home, 'logs'),
    nodeStatusUpdateFrequency: '2s',
    nodeLeaseDurationSeconds: 8,
  })
  write('proxy.json', {
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    clientConnection: { kubeconfig: join(tool, 'pki/kube-proxy.conf') },
    mode: 'nftables',
    clusterCIDR: '10.88.0.0/16',
    conntrack: { maxPerCore: 0, min: 0 },
  })
}

/** Rights of the proxies, and StorageClass `local` with its volumes, in which fsGroup works as on a real disk. */
export function firstObjects(folder: string): object {
  const volumes = NODES.flatMap((node) =>
    Array.from({ length: VOLUMES_PER_NODE }, (_, at) => ({ node, name: `node${node}-${at}` })),
  )
  for (const { name } of volumes) mkdirSync(join(folder, 'volumes', name), { recursive: true })
  const items = [
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: 'kube-proxy' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:node-proxier' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'system:kube-proxy' }],
    },
    {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: 'local', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
      provisioner: 'kubernetes.io/no-provisioner',
      volumeBindingMode: 'WaitForFirstConsumer',
    },
    ...volumes.map(({ node, name }) => ({
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name },
      spec: {
        capacity: { storage: '100Gi' },
        accessModes: ['ReadWriteOnce'],
        persistentVolumeReclaimPolicy: 'Retain',
        storageClassName: 'local',
        local: { path: join(folder, 'volumes', name) },
        nodeAffinity: {
          required: {
            nodeSelectorTerms: [
              {
                matchExpressions: [
                  { key: 'kubernetes.io/hostname', operator: 'In', values: [`node${node}`] },
                ],
              },
            ],
          },
        },
      },
    })),
  ]
  return { apiVersion: 'v1', kind: 'List', items }
}
