"""What the preset `coding` declares of the network since its version 2.

Reads of the usual package indexes and of the hosts that hold their files, nothing else. The Go proxy fetches the module
whose path it is asked for from wherever that path leads, so it is asked for modules of well-known hosts alone: else a
module's path could take data to any host. Git hosts are left to the task or to the operator.
"""

_GO_HOSTS = (
    "bitbucket.org",
    "cel.dev",
    "cloud.google.com",
    "dario.cat",
    "filippo.io",
    "github.com",
    "gitlab.com",
    "go.etcd.io",
    "go.mongodb.org",
    "go.opencensus.io",
    "go.opentelemetry.io",
    "go.uber.org",
    "go.yaml.in",
    "golang.org",
    "gonum.org",
    "google.golang.org",
    "gopkg.in",
    "gorm.io",
    "gotest.tools",
    "honnef.co",
    "k8s.io",
    "modernc.org",
    "mvdan.cc",
    "oras.land",
    "rsc.io",
    "sigs.k8s.io",
)


def _go(prefix: str) -> str:
    return "".join(f'        - "{prefix}{host}/"\n' for host in _GO_HOSTS)


_DECLARED = """\
network:
  known_models: true           # inference calls of the well-known providers of models
  hosts:                       # reads of the usual package indexes and of the hosts that hold their files
    - {host: pypi.org, port: 443}
    - {host: files.pythonhosted.org, port: 443}
    - {host: registry.npmjs.org, port: 443}
    - {host: registry.yarnpkg.com, port: 443}
    - {host: deb.debian.org}
    - {host: security.debian.org}
    - {host: archive.ubuntu.com}
    - {host: "*.archive.ubuntu.com"}
    - {host: security.ubuntu.com}
    - {host: ports.ubuntu.com}
    - {host: crates.io, port: 443, paths: ["/api/v1/crates/"]}
    - {host: index.crates.io, port: 443}
    - {host: static.crates.io, port: 443}
    - host: proxy.golang.org   # it fetches what it is asked for, so not from everywhere
      port: 443
      paths:
        - "/sumdb/sum.golang.org/supported"
        - "/sumdb/sum.golang.org/latest"
        - "/sumdb/sum.golang.org/tile/"
%GO_PROXY%    - host: sum.golang.org
      port: 443
      paths:
        - "/supported"
        - "/latest"
        - "/tile/"
%GO_SUM%    - {host: repo.maven.apache.org, port: 443}
    - {host: repo1.maven.org, port: 443}
    - {host: rubygems.org, port: 443}
    - {host: index.rubygems.org, port: 443}
    - {host: conda.anaconda.org, port: 443}
    - {host: repo.anaconda.com, port: 443}
"""

NETWORK = _DECLARED.replace("%GO_PROXY%", _go("/") + _go("/sumdb/sum.golang.org/lookup/")).replace(
    "%GO_SUM%", _go("/lookup/")
)

RULE = """
  @id("coding/vouched-traffic")
  @reason("traffic whose steering values are all vouched for")
  permit(principal, action, resource)
  when { context.channel == "net" };
"""
