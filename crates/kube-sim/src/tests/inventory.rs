//! Access to stored objects without the API.

use kube::api::PostParams;
use rstest::rstest;
use serde_json::json;

use super::*;

#[rstest]
#[case::of_trees(None)]
#[case::of_texts(Some(0))]
#[tokio::test]
async fn the_first_objects_are_told_with_how_many_there_are_and_others_by_a_label(#[case] trees: Option<usize>) {
    let f = Fixture::new().await;
    if let Some(most) = trees {
        f.cluster.keep_compact(most);
    }
    for number in 0..5 {
        let labels = json!({"app": format!("a{}", number % 2)});
        let metadata = json!({"name": format!("s{number}"), "labels": labels});
        let secret = secret_from(json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata}));
        f.secrets().create(&PostParams::default(), &secret).await.expect("created");
    }
    f.make_thing("s9").await;
    let names = |objects: &[crate::StoredObject]| objects.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
    let (first, count) = f.cluster.first_objects("secrets", 2);
    assert_eq!((names(&first), count), (vec!["s0".to_owned(), "s1".to_owned()], 5));
    assert_eq!(first[0].object["metadata"]["labels"]["app"], "a0");
    let namespace = first[0].namespace.clone();
    let odd = f.cluster.labelled_objects("secrets", &namespace, "app", |value| value == "a1");
    assert_eq!(names(&odd), ["s1", "s3"]);
    assert!(f.cluster.labelled_objects("secrets", "elsewhere", "app", |_| true).is_empty());
    assert_eq!(f.cluster.first_objects("nothings", 2).1, 0);
}
