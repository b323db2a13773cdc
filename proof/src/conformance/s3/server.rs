//! Which store it is that the simulated one is compared with.

use s3_sim::Dialect;

/// A real store, by its product. What is known of one excuses no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// MinIO.
    MinIo,
    /// Versity's gateway before a file system.
    VersityGw,
    /// Any other: nothing is known of it.
    Other,
}

impl Server {
    /// The product that calls itself so in the header `Server`.
    pub fn from_header(header: &str) -> Self {
        match header {
            "MinIO" => Self::MinIo,
            "VERSITYGW" => Self::VersityGw,
            _ => Self::Other,
        }
    }

    /// The name that people know it by.
    pub fn name(self) -> &'static str {
        match self {
            Self::MinIo => "MinIO",
            Self::VersityGw => "versitygw",
            Self::Other => "an unknown store",
        }
    }

    /// The reading of the protocol that the simulated store is to follow.
    pub fn dialect(self, region: &str) -> Dialect {
        Dialect { region: region.to_owned(), ..Dialect::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_known_by_their_header() {
        assert_eq!(Server::from_header("MinIO"), Server::MinIo);
        assert_eq!(Server::from_header("VERSITYGW"), Server::VersityGw);
        assert_eq!(Server::from_header("AmazonS3"), Server::Other);
    }
}
